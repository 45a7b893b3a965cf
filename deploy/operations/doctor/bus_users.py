"""Users of the bus: whether the server lets each do what the code says, as far as there are credentials for it here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, structs

from deploy.nats_configuration import SERVICES, SUPERVISOR, launcher_user, subscriber_user
from deploy.operations.doctor.findings import Finding, ok, problem, warning
from libs.bus import BusSettings, connect_bus
from libs.errors import InvalidRequest, Unavailable
from libs.events.accounts import CONTROL_PLANE, subscriber_account
from libs.events.permissions import (
    OWN_RIGHTS,
    SERVICES_INBOX,
    SUBSCRIBERS_INBOX,
    SUPERVISOR_INBOX,
    Permissions,
    launcher_inbox,
    launcher_permissions,
    subscriber_permissions,
    supervisor_permissions,
)
from libs.secret_files import read_secret

ANSWERS_WITHIN_S: Final = 2.0
REMEDY: Final = "give it what libs/events/permissions.py says; `resolute up` and the chart do by themselves"


class Subjects(Struct, frozen=True):
    """Empty where nothing is said, which allows everything."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Rights(Struct, frozen=True, kw_only=True):
    publish: Subjects = Subjects()
    subscribe: Subjects = Subjects()


class BusUser(Struct, frozen=True, kw_only=True):
    """Who we are for the server."""

    user: str
    account: str
    permissions: Rights = Rights()


class _Answer(Struct, frozen=True):
    data: BusUser


class Expected(Struct, frozen=True):
    account: str
    inbox: str
    permissions: Permissions | None
    """None for everything."""


def expected_users(pools: Iterable[str], subscribers: Iterable[str]) -> dict[str, Expected]:
    """What each user is to have, by its name. Pure."""
    launchers = {
        launcher_user(pool): Expected(CONTROL_PLANE, launcher_inbox(pool), launcher_permissions(pool)) for pool in pools
    }
    return {
        SERVICES: Expected(CONTROL_PLANE, SERVICES_INBOX, None),
        SUPERVISOR: Expected(CONTROL_PLANE, SUPERVISOR_INBOX, supervisor_permissions()),
        **{
            subscriber_user(name): Expected(subscriber_account(name), SUBSCRIBERS_INBOX, subscriber_permissions())
            for name in (None, *subscribers)
        },
        **launchers,
    }


def read_passwords(file: Path) -> dict[str, str]:
    """By name of the user. Raises InvalidRequest."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"passwords of users of the bus cannot be read from {file}: {error}") from error


def own_password(settings: BusSettings) -> dict[str, str]:
    """That of the user of these settings, where they have one. Raises OSError for a file that cannot be read."""
    if settings.user is None:
        return {}
    file = settings.password_file
    return {settings.user: read_secret(file) if file is not None else settings.password or ""}


async def check_users(settings: BusSettings, passwords: Mapping[str, str], pools: Iterable[str]) -> list[Finding]:
    """One finding for each user whose password is among ``passwords``."""
    findings = []
    for user, expected in expected_users(pools, settings.subscribers).items():
        if user not in passwords:
            continue
        as_user = structs.replace(
            settings,
            name="resolute-doctor",
            user=user,
            password=passwords[user],
            password_file=None,
            token=None,
            credentials_file=None,
            inbox_prefix=expected.inbox,
            manage_streams=False,
            connect_timeout_s=ANSWERS_WITHIN_S,
            request_timeout_s=ANSWERS_WITHIN_S,
        )
        try:
            findings.append(about_user(await who_we_are(as_user), expected))
        except Unavailable as error:
            findings.append(warning(_part(user), f"does not say what it may do: {error}", remedy=REMEDY))
    return findings


async def who_we_are(settings: BusSettings) -> BusUser:
    """Connect with ``settings`` and ask the server. Raises Unavailable, also when the user may not ask.

    Source: https://docs.nats.io/running-a-nats-service/configuration/sys_accounts, ``$SYS.REQ.USER.INFO``.
    """
    async with connect_bus(settings) as bus:
        answer = await bus.request(OWN_RIGHTS, b"", timeout_s=ANSWERS_WITHIN_S)
    return msgspec.json.decode(answer, type=_Answer).data


def about_user(found: BusUser, expected: Expected) -> Finding:
    """Pure."""
    part = _part(found.user)
    if found.account != expected.account:
        says = f"is in the account {found.account} instead of {expected.account}"
        return problem(part, says, remedy="put it there (libs/events/accounts.py)")
    wanted = expected.permissions
    differences = [
        *_differences("publish", found.permissions.publish, wanted.publish if wanted else ()),
        *_differences("subscribe to", found.permissions.subscribe, wanted.subscribe if wanted else ()),
    ]
    if differences:
        return problem(part, "; ".join(differences), remedy=REMEDY)
    return ok(part, "may do what it needs, and no more" if wanted else "may do everything, as services have to")


def _differences(verb: str, found: Subjects, wanted: tuple[str, ...]) -> list[str]:
    """In words; nothing is wanted of those who may do everything."""
    said = []
    if found.deny:
        said.append(f"may not {verb} {', '.join(sorted(found.deny))}")
    if wanted and not found.allow:
        said.append(f"may {verb} everything")
    elif not wanted and found.allow:
        said.append(f"may {verb} nothing but {', '.join(sorted(found.allow))}")
    else:
        if missing := sorted({*wanted} - {*found.allow}):
            said.append(f"may not {verb} {', '.join(missing)}")
        if too_much := sorted({*found.allow} - {*wanted}):
            said.append(f"may {verb} {', '.join(too_much)} too")
    return said


def _part(user: str) -> str:
    return f"user {user} of the bus"
