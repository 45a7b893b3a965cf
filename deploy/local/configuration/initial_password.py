"""The password that ``admin`` and ``determined`` begin with, where anybody else could reach the api.

A port of this machine is open to everybody who has an account on it, and tasks run with the rights of whoever started
the system: a blank password is for those who are alone.
"""

from __future__ import annotations

import ipaddress
import os
import pwd
import secrets
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import yaml

from deploy.local.failure import CannotStart
from deploy.local.kubernetes import is_on_this_machine
from deploy.local.layout import LOOPBACK, Layout, write_private

BLANK: Final = "blank"
INITIAL: Final = "initial"
CHOICES: Final = (INITIAL, BLANK)
CHOICE_VARIABLE: Final = "RESOLUTE_PASSWORDS"
_FIRST_PERSON: Final = 1000
_LAST_PERSON: Final = 60_000
"""Ids of accounts for people, as adduser gives them; see login.defs(5)."""
_NO_SHELLS: Final = ("nologin", "false", "sync")


def prepare(layout: Layout, arguments: Namespace) -> None:
    """Make an initial password, below the state folder, if this is the first start and one is needed.

    Callers that say nothing about passwords get blank ones. Raises CannotStart for blank ones that others could use.
    """
    if layout.options_file.exists():
        return
    given = _given_in(Path(arguments.config)) if arguments.config else None
    said = getattr(arguments, "passwords", BLANK) or os.environ.get(CHOICE_VARIABLE)
    if said not in (None, *CHOICES):
        raise CannotStart(f"{CHOICE_VARIABLE} must be one of: {', '.join(CHOICES)}")
    if given is not None:
        said = INITIAL if given else BLANK
    host = arguments.host or LOOPBACK
    is_reachable = not _is_loopback(host)
    if said == BLANK and is_reachable:
        raise CannotStart(
            f"with --host {host} anybody could log in as administrator: blank passwords are for this machine"
        )
    is_needed = is_reachable or bool(other_people(pwd.getpwall(), password_hashes())) or _serves_others(arguments)
    layout.initial_password.unlink(missing_ok=True)  # of a start that came to nothing
    if not given and (said == INITIAL or (said is None and is_needed)):
        write_private(layout.initial_password, new_password())


def initial_password(layout: Layout) -> str | None:
    """The one that was made at the first start, while its file is kept."""
    try:
        return layout.initial_password.read_text()
    except FileNotFoundError:
        return None


def other_people(accounts: Iterable[pwd.struct_passwd], hashes: Mapping[str, str]) -> list[str]:
    """Names of those who may log in to this machine beside us.

    hashes  of passwords, by name, as far as they may be read; "!" and "*" begin one that fits no password
    """
    mine = {os.getuid(), int(os.environ.get("SUDO_UID", os.getuid()))}
    return [
        account.pw_name
        for account in accounts
        if _FIRST_PERSON <= account.pw_uid <= _LAST_PERSON
        and account.pw_uid not in mine
        and Path(account.pw_shell).name not in _NO_SHELLS
        and not (hashes.get(account.pw_name, "").startswith(("!", "*")) and not _has_keys(account))
    ]


def password_hashes() -> dict[str, str]:
    """By name of the account; nothing where they may not be read. Source: shadow(5)."""
    try:
        lines = Path("/etc/shadow").read_text().splitlines()
    except OSError:
        return {}
    return {name: fields[0] for name, *fields in (line.split(":") for line in lines) if fields}


def _has_keys(account: pwd.struct_passwd) -> bool:
    """Whether one may log in with a key where no password fits."""
    return (Path(account.pw_dir) / ".ssh" / "authorized_keys").exists()


def _serves_others(arguments: Namespace) -> bool:
    """Pods reach the api on all addresses; those of a cluster on this machine are no more others than processes are."""
    kubeconfig = getattr(arguments, "kubeconfig", None)
    return kubeconfig is not None and not is_on_this_machine(Path(kubeconfig))


def new_password() -> str:
    """A password that the client does not call weak: with a digit, a small and a capital letter."""
    while True:
        password = secrets.token_urlsafe(12)
        if any(map(str.isdigit, password)) and any(map(str.islower, password)) and any(map(str.isupper, password)):
            return password


def _given_in(config: Path) -> str | None:
    """What the cluster configuration says, blank or not; None when it says nothing."""
    try:
        content = yaml.safe_load(config.read_text())
    except (OSError, yaml.YAMLError):
        return None  # whoever reads it in earnest explains what is wrong
    security = content.get("security") if isinstance(content, dict) else None
    given = security.get("initial_user_password") if isinstance(security, dict) else None
    return None if given is None else str(given)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
