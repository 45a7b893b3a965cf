"""Sentences about access tokens (docs/reference/platform.md 2.4) as rows: what the client of somebody prints.

Sentences without a row have a test of their own: lifetimes and ``-1`` of the configuration in
``tests/unit/api/access/test_token_lifetimes.py``; the text that is shown once, passwords and deactivation in
``tests/integration/api/users/test_sessions.py``; ``det token login`` in ``test_users_with_client.py`` beside it; who
may under RBAC in ``rights_matrix.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ADMIN, ROBOT = "admin", "robot"


@dataclass(frozen=True)
class Said:
    """One sentence. In ``arguments``, braces name tokens of the robot: ``good``, ``revoked``, and ``old``, which has
    expired.

    says     what is printed, in these words; braces as above
    silent   what is not printed
    refused  the command fails
    """

    sentence: str
    arguments: tuple[str, ...]
    says: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    who: str = ADMIN
    refused: bool = False


_TOO_LONG: Final = "token Lifespan must be less than max token lifespan"
_NOT_YOURS: Final = "only admin privileged users can {} token for own/other users"
_INACTIVE: Final = "unable to update inactive token with ID {}"

SAID: Final = (
    Said("longer than the maximum is refused", ("create", "robot", "-e", "31"), (_TOO_LONG,), refused=True),
    Said("negative is refused", ("create", "robot", "-e", "-2"), ("lifespan: ",), refused=True),
    Said("unknown user", ("create", "nobody"), ("not found",), refused=True),
    Said("the description is kept", ("describe", "{good}"), ("of good",)),
    Said("several are described at once", ("describe", "{good}", "{spare}"), ("of good", "of spare")),
    Said("revoked and expired are hidden", ("list", "robot"), ("of good",), ("of revoked", "of old")),
    Said("or shown", ("list", "robot", "--show-inactive"), ("of good", "of revoked", "of old")),
    Said("the kind", ("list", "robot", "--json"), ('"tokenType": "TOKEN_TYPE_ACCESS_TOKEN"', '"revoked": false')),
    Said("a description is edited", ("edit", "{spare}", "-d", "of spare parts"), ("of spare parts", "{spare}")),
    Said("not of a revoked one", ("edit", "{revoked}", "-d", "x"), (_INACTIVE.format("{revoked}"),), refused=True),
    Said("not of an expired one", ("edit", "{old}", "-d", "x"), (_INACTIVE.format("{old}"),), refused=True),
    Said("nor is it revoked again", ("revoke", "{revoked}"), (_INACTIVE.format("{revoked}"),), refused=True),
    Said("an unknown one is not revoked", ("revoke", "999999"), ("Token not found",), refused=True),
    Said("nor edited", ("edit", "999999", "-d", "x"), ("not found",), refused=True),
    Said("users make none for themselves", ("create",), (_NOT_YOURS.format("create"),), who=ROBOT, refused=True),
    Said("nor for others", ("create", "admin"), (_NOT_YOURS.format("create"),), who=ROBOT, refused=True),
    Said("nor edit", ("edit", "{good}", "-d", "x"), (_NOT_YOURS.format("update"),), who=ROBOT, refused=True),
    Said("nor revoke", ("revoke", "{good}"), (_NOT_YOURS.format("update"),), who=ROBOT, refused=True),
    Said("but list their own", ("list",), ("of good",), ("of another",), who=ROBOT),
    Said("also by name", ("list", "robot"), ("of good",), ("of another",), who=ROBOT),
    Said("not those of others", ("list", "admin"), ("only admin privileged users",), who=ROBOT, refused=True),
    Said("administrators list all", ("list",), ("of good", "of another")),
)

LIFETIMES_H: Final = ((("-e", "3"), 72), (("-e", "-1"), 720), ((), 720))
"""Arguments of ``det token create``, and how many hours the token lives."""

UNPARSABLE: Final = ("x", "-1h", "0h", "72", "1h x")
"""Lifespans that the client never sends."""

SORTED: Final = {
    "SORT_BY_UNSPECIFIED": "id",
    "SORT_BY_USER_ID": "userId",
    "SORT_BY_EXPIRY": "expiry",
    "SORT_BY_CREATED_AT": "createdAt",
    "SORT_BY_TOKEN_TYPE": "tokenType",
    "SORT_BY_REVOKED": "revoked",
    "SORT_BY_DESCRIPTION": "description",
}
"""What a list is sorted by, and the field that shows it; by ids where that is equal."""
