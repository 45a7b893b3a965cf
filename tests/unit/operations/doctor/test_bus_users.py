"""What the doctor says of the rights of a user of the bus."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deploy.nats_configuration import SERVICES, launcher_user
from deploy.operations.doctor.bus_users import (
    BusUser,
    Rights,
    Subjects,
    about_user,
    expected_users,
    own_password,
    read_passwords,
)
from libs.bus import BusSettings
from libs.errors import InvalidRequest
from libs.events.accounts import CONTROL_PLANE, SUBSCRIBERS

USERS = expected_users(["a"], [])
LAUNCHER = launcher_user("a")
ALL = USERS[LAUNCHER].permissions
assert ALL is not None
GOOD = Rights(publish=Subjects(allow=ALL.publish), subscribe=Subjects(allow=ALL.subscribe))


def rights(publish: Subjects | None = None, subscribe: Subjects | None = None) -> Rights:
    return Rights(publish=publish or GOOD.publish, subscribe=subscribe or GOOD.subscribe)


@pytest.mark.parametrize(
    ("user", "account", "permissions", "level", "says"),
    [
        (LAUNCHER, CONTROL_PLANE, GOOD, "ok", "may do what it needs, and no more"),
        (SERVICES, CONTROL_PLANE, Rights(), "ok", "may do everything"),
        (LAUNCHER, SUBSCRIBERS, GOOD, "problem", "is in the account SUBSCRIBERS instead of RESOLUTE"),
        (LAUNCHER, CONTROL_PLANE, Rights(), "problem", "may publish everything; may subscribe to everything"),
        (SERVICES, CONTROL_PLANE, GOOD, "problem", "may publish nothing but"),
        (SERVICES, CONTROL_PLANE, Rights(publish=Subjects(deny=("x",))), "problem", "may not publish x"),
        (
            LAUNCHER,
            CONTROL_PLANE,
            rights(publish=Subjects(allow=ALL.publish[1:])),
            "problem",
            f"may not publish {ALL.publish[0]}",
        ),
        (
            LAUNCHER,
            CONTROL_PLANE,
            rights(subscribe=Subjects(allow=(*ALL.subscribe, ">"))),
            "problem",
            "may subscribe to > too",
        ),
    ],
)
def test_differences_from_the_code_are_problems(
    user: str, account: str, permissions: Rights, level: str, says: str
) -> None:
    found = about_user(BusUser(user=user, account=account, permissions=permissions), USERS[user])
    assert (found.level, found.part) == (level, f"user {user} of the bus")
    assert says in found.says


def test_passwords_come_from_the_settings_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    file.write_bytes(msgspec.json.encode({LAUNCHER: "x"}))
    assert read_passwords(file) == {LAUNCHER: "x"}
    file.write_text("secret")
    assert own_password(BusSettings(user=SERVICES, password="p", password_file=str(file))) == {SERVICES: "secret"}
    assert own_password(BusSettings(user=SERVICES, password="p")) == {SERVICES: "p"}
    assert own_password(BusSettings()) == {}
    for wrong in (file, tmp_path / "none"):
        with pytest.raises(InvalidRequest, match="passwords of users of the bus cannot be read"):
            read_passwords(wrong)
