"""Users and logins, as the unmodified client sees them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from libs.events.capacity import PoolCapacity
from tests.harness.api import ApiProcess
from tests.harness.det import Det
from tests.harness.waiting import wait_until
from tests.integration.api.world import World

GOOD = "Passw0rd!"


@pytest.fixture
def other(api: ApiProcess, tmp_path: Path) -> Det:
    """Somebody else's machine."""
    return Det(url=api.url, home=tmp_path)


def listed(det: Det, *arguments: str) -> str:
    return det("user", "list", *arguments).out


def test_without_login_one_is_the_user_determined(other: Det) -> None:
    assert "logged in as user 'determined'" in other("user", "whoami").out


def test_login_is_remembered(det: Det) -> None:
    assert "logged in as user 'admin'" in det("user", "whoami").out


def test_wrong_password_is_refused(other: Det) -> None:
    ended = other.fails("user", "login", "admin", answers=["wrong"])
    assert "invalid" in (ended.out + ended.err).lower()


def test_no_password_opens_an_account_that_has_one(det: Det, other: Det) -> None:
    det("user", "create", "guarded", "--password", GOOD)
    other.fails("user", "login", "guarded", answers=[""])
    other("user", "login", "guarded", answers=[GOOD])
    assert "user 'guarded'" in other("user", "whoami").out


def test_only_administrators_create_users(other: Det) -> None:
    ended = other.fails("user", "create", "sneaky", "--password", GOOD)
    assert "only admin privileged users can create other users" in ended.err


def test_a_name_can_be_taken_once(det: Det) -> None:
    det("user", "create", "twice", "--password", GOOD)
    assert "user already exists" in det.fails("user", "create", "twice", "--password", GOOD).err


def test_changing_ones_password_ends_older_logins(api: ApiProcess, det: Det, other: Det, tmp_path: Path) -> None:
    det("user", "create", "changer", "--password", GOOD)
    elsewhere = Det(url=api.url, home=tmp_path / "elsewhere")
    for machine in (other, elsewhere):
        machine("user", "login", "changer", answers=[GOOD])
    other("user", "change-password", answers=["N3wPassword", "N3wPassword"])
    assert "user 'changer'" in other("user", "whoami").out, "who changes it is logged in again at once"
    # The other machine finds its token stale and asks for the password, of which only the new one counts.
    elsewhere.fails("user", "whoami", answers=[GOOD])
    assert "user 'changer'" in elsewhere("user", "whoami", answers=["N3wPassword"]).out


def test_deactivated_users_are_told_so(det: Det, other: Det) -> None:
    det("user", "create", "leaver", "--password", GOOD)
    other("user", "login", "leaver", answers=[GOOD])
    det("user", "deactivate", "leaver")
    assert "Forbidden" in other.fails("user", "whoami").err
    assert "user is not active" in other.fails("user", "login", "leaver", answers=[GOOD]).err
    assert "leaver" not in listed(det)
    assert "leaver" in listed(det, "--all")
    det("user", "activate", "leaver")
    assert "user 'leaver'" in other("user", "whoami").out


def test_fields_are_edited(det: Det) -> None:
    det("user", "create", "before", "--password", GOOD)
    det("user", "edit", "before", "--display-name", "Ann B", "--admin=true")
    det("user", "rename", "before", "after")
    det(
        "user", "link-with-agent-user", "after", "--agent-uid=7", "--agent-user=ann", "--agent-gid=8", "--agent-group=g"
    )
    (line,) = [line for line in listed(det).splitlines() if "after" in line]
    assert "Ann B" in line
    assert "ann" in line


def test_linking_says_what_would_keep_tasks_from_starting(world: World, det: Det) -> None:
    det("user", "create", "linked", "--password", GOOD)
    account = ("--agent-user=ann", "--agent-gid=8", "--agent-group=g")
    link = ("user", "link-with-agent-user", "linked", "--agent-uid=7", *account)
    reason = "/root keeps them from /root/bin/python3"
    pool = PoolCapacity(pool="default", backend="process", linked_users_blocked_by=reason)
    world.publish(pool)
    wait_until(lambda: det.run(*link).code != 0, what="the api knows the capacity of the pool")
    said = det.fails(*link).err
    assert f"tasks of linked users cannot start, because {reason}; install" in said
    assert "resolute up --python" in said
    det("user", "link-with-agent-user", "linked", "--agent-uid=0", *account)  # root may execute everything
    world.publish(msgspec.structs.replace(pool, linked_users_blocked_by=""))
    wait_until(lambda: det.run(*link).code == 0, what="the user is linked once the interpreters are open")


def test_logging_out_ends_the_token(api: ApiProcess, det: Det, other: Det) -> None:
    det("user", "create", "brief", "--password", GOOD)
    other("user", "login", "brief", answers=[GOOD])
    kept = (other.home / "auth.json").read_text()
    other("user", "logout")
    (other.home / "auth.json").write_text(kept)
    other.fails("user", "whoami", answers=["wrong"])


def test_a_token_of_nobody_leads_to_a_new_login(det: Det, other: Det) -> None:
    other("user", "login", "determined", answers=[""])
    path = other.home / "auth.json"
    token = _token_in(path)
    path.write_text(path.read_text().replace(token, "garbage"))
    assert "user 'determined'" in other("user", "whoami", answers=[""]).out
    assert _token_in(path) != "garbage"


def test_tokens_for_scripts(det: Det, other: Det) -> None:
    det("user", "create", "robot", "--password", GOOD)
    created = det("token", "create", "robot", "--expiration-days", "3", "--description", "nightly").out
    assert "nightly" in det("token", "list", "robot").out
    token = created.split("Access-Token:")[-1].split()[0]
    other("token", "login", token)
    assert "user 'robot'" in other("user", "whoami").out


def _token_in(path: Path) -> str:
    (master,) = json.loads(path.read_text())["masters"].values()
    token: str = next(iter(master["tokens"].values()))
    return token
