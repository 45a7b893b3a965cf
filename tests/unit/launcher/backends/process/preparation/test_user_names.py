"""The user of a task has his name where the machine does not know it."""

from __future__ import annotations

import pytest

from services.launcher.backends.process.preparation.user_names import group_for, passwd_for

MACHINE = "root:x:0:0:root:/root:/bin/bash\nbo:x:1000:1000::/home/bo:/bin/sh\nodd\n"


@pytest.mark.parametrize(
    ("user", "uid", "first"),
    [
        ("root", 0, None),
        ("bo", 1000, None),
        ("root", 1000, "root:x:1000:1000::/w:/bin/bash"),
        ("bo", 1001, "bo:x:1001:1000::/w:/bin/bash"),
        ("ann", 1234, "ann:x:1234:1000::/w:/bin/bash"),
        ("odd", 7, "odd:x:7:1000::/w:/bin/bash"),
    ],
)
def test_the_first_line_of_the_user_has_the_uid(user: str, uid: int, first: str | None) -> None:
    found = passwd_for(MACHINE, user=user, uid=uid, gid=1000, home="/w")
    assert found == (None if first is None else f"{first}\n{MACHINE}")


GROUPS = "root:x:0:\ntty:x:5:\nlab:x:300:bo\n"


@pytest.mark.parametrize(
    ("group", "gid", "with_tty", "expected"),
    [
        ("root", 0, True, None),
        ("lab", 300, True, None),
        ("lab", 301, True, f"lab:x:301:\n{GROUPS}"),
        ("crew", 300, True, f"crew:x:300:\n{GROUPS}"),
        ("lab", 300, False, "root:x:0:\nlab:x:300:bo\n"),
        ("crew", 7, False, "crew:x:7:\nroot:x:0:\nlab:x:300:bo\n"),
    ],
)
def test_the_first_line_of_the_group_has_the_gid(group: str, gid: int, with_tty: bool, expected: str | None) -> None:
    assert group_for(GROUPS, group=group, gid=gid, with_tty=with_tty) == expected
