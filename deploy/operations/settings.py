"""Where the installation is that a command is about: the settings that its services have.

They are in the environment where services run in containers. ``resolute up`` writes them into its state folder, and
those of the api name everything.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from msgspec import Struct

from deploy.command_line import state_folder
from libs.bus.settings import BusSettings
from libs.db.connecting.settings import DatabaseSettings
from libs.db.services_role.role import ServicesRole
from libs.errors import FailedPrecondition
from libs.settings import load
from libs.telemetry import LogLevel, TelemetrySettings, configure_logging

DATABASE_VARIABLE: Final = "RESOLUTE_DATABASE__URL"
FORMER_VARIABLE: Final = "RESOLUTE_FORMER_DATABASE_URL"
BUS_VARIABLE: Final = "RESOLUTE_BUS__URL"
_CHOSEN_BY_UP: Final = Path("options.json")
_WRITTEN_BY_UP: Final = Path("config/api.yaml")


class LogIntakeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The log intake as what ships the lines of tasks is told of it."""

    url: str | None = None
    names: tuple[str, ...] = ()
    """Looked for in its certificate; none is the host of ``url``."""
    ca_file: str | None = None
    """Authority of the certificate; may be missing or empty."""
    cert_file: str | None = None
    """The certificate itself, which is trusted where there is no authority."""


class OperationsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    database: DatabaseSettings = DatabaseSettings()
    former_database_url: str | None = None
    """``database.url`` as it was before the password in it changed. ``resolute db`` changes it in the database, too."""
    services_role: ServicesRole = ServicesRole()
    """Made by ``resolute db upgrade``, with the credentials of ``database``."""
    bus: BusSettings = BusSettings(name="resolute")
    cluster_config: str | None = None
    """Path of the cluster configuration file."""
    checkpoint_roots: dict[str, str] = {}
    """Where shared directories of checkpoint storage are seen here: host path -> path here."""
    log_intake: LogIntakeSettings = LogIntakeSettings()


def add_settings_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--settings",
        type=Path,
        help="settings file of a service; RESOLUTE_... variables override it (default: that of the api in the state "
        "folder, if there is one)",
    )


def load_settings(arguments: Namespace, *, log_level: LogLevel = "warning") -> OperationsSettings:
    """The settings that the command line, the state folder and the environment come to.

    Raises InvalidSettings, and FailedPrecondition where none of them says where the installation is.

    From here on what libraries log goes to standard error: standard output is for the answer.
    """
    configure_logging(TelemetrySettings(log_format="console", log_level=log_level), service="resolute")
    of_state = state_folder(arguments.state) / _WRITTEN_BY_UP
    path = arguments.settings or (of_state if of_state.exists() else None)
    if path is None and not any(name.startswith((DATABASE_VARIABLE, BUS_VARIABLE)) for name in os.environ):
        raise FailedPrecondition(_not_started(state_folder(arguments.state)))
    return load(OperationsSettings, path, os.environ, others_sections=True)


def _not_started(state: Path) -> str:
    if (state / _CHOSEN_BY_UP).exists():
        return f"the start of {state} did not come to its end: repeat `resolute up`"
    return (
        f"nothing was ever started in {state}: name the installation with --state, --settings or {DATABASE_VARIABLE}, "
        "or start it with `resolute up`"
    )


def names_database(arguments: Namespace) -> bool:
    """Whether somebody says where the database is; otherwise it is that of a system on this machine."""
    return arguments.settings is not None or any(name.startswith(DATABASE_VARIABLE) for name in os.environ)
