"""``resolute doctor``: one line for each thing that was looked at; exit code 1 when there is a problem."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import structs

from deploy.command_line import Commands, behind_the_command, state_folder
from deploy.operations.doctor.bus import check_bus, check_strangers, unreachable
from deploy.operations.doctor.bus_users import check_users, own_password, read_passwords
from deploy.operations.doctor.database import check_database
from deploy.operations.doctor.disks import check_disks
from deploy.operations.doctor.findings import Finding, as_json, as_text, exit_code
from deploy.operations.doctor.launchers import check_launchers
from deploy.operations.doctor.leaders import check_leaders
from deploy.operations.doctor.log_intake import check_log_intake
from deploy.operations.doctor.logins.login_provider import check_login_provider
from deploy.operations.doctor.logins.scim import check_scim
from deploy.operations.doctor.pull_secrets import check_pull_secrets
from deploy.operations.doctor.services import check_services
from deploy.operations.doctor.storage import check_storage
from deploy.operations.doctor.summaries import check_summaries
from deploy.operations.doctor.tasks.interpreters import check_interpreters
from deploy.operations.doctor.tasks.namespaces import check_tasks_namespaces
from deploy.operations.doctor.tasks.pages import check_task_pages
from deploy.operations.doctor.tasks.pod_specs import check_pod_specs
from deploy.operations.doctor.tasks.selectors import check_selectors
from deploy.operations.doctor.tasks.stored_pods import check_stored_pods
from deploy.operations.settings import OperationsSettings, add_settings_argument, load_settings
from libs.bus import connect_bus
from libs.clock import Clock, SystemClock
from libs.cluster.config import ClusterConfig
from libs.cluster.loading import read_cluster_config
from libs.errors import Unavailable

CONNECTS_WITHIN_S: Final = 5.0
_WRITTEN_BY_UP: Final = Path("nats/users.json")


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser("doctor", description=__doc__, parents=[behind_the_command()])
    add_settings_argument(parser)
    parser.add_argument(
        "--bus-users",
        type=Path,
        help="JSON file with passwords of users of the bus by name, whose rights are looked at (default: that of the "
        "state folder, if there is one)",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=_run)


def _run(arguments: Namespace) -> int:
    settings = load_settings(arguments, log_level="error")
    of_state = state_folder(arguments.state) / _WRITTEN_BY_UP
    users = arguments.bus_users or (of_state if of_state.exists() else None)
    findings = [
        *check_disks(state_folder(arguments.state)),
        *check_services(state_folder(arguments.state)),
        *asyncio.run(check_interpreters(state_folder(arguments.state), settings.database)),
        *asyncio.run(examine(settings, SystemClock(), read_passwords(users) if users else {})),
    ]
    print((as_json if arguments.json else as_text)(findings))
    return exit_code(findings)


async def examine(
    settings: OperationsSettings, clock: Clock, bus_passwords: Mapping[str, str] = MappingProxyType({})
) -> list[Finding]:
    """Look at everything; what does not answer is a finding. Raises InvalidRequest for a wrong configuration file.

    bus_passwords  of users of the bus, by name; the rights of others are not looked at
    """
    cluster, _ = read_cluster_config(Path(settings.cluster_config) if settings.cluster_config else None)
    return [
        *await check_database(settings.database, clock),
        *await check_leaders(settings.database),
        *await check_summaries(settings.database),
        *await _on_the_bus(settings, cluster, clock, bus_passwords),
        await asyncio.to_thread(check_storage, cluster.checkpoint_storage, settings.checkpoint_roots),
        *check_pull_secrets(cluster),
        check_task_pages(cluster),
        *await asyncio.to_thread(check_tasks_namespaces, cluster),
        *await asyncio.to_thread(check_selectors, cluster),
        *check_pod_specs(cluster),
        *await check_stored_pods(cluster, settings.database),
        *await check_log_intake(settings.log_intake),
        *await check_login_provider(cluster.oidc, clock, os.environ),
        *await check_scim(cluster, settings.database),
    ]


async def _on_the_bus(
    settings: OperationsSettings, cluster: ClusterConfig, clock: Clock, passwords: Mapping[str, str]
) -> list[Finding]:
    # Whoever looks makes nothing: a stream that is missing is to be found missing.
    looking = structs.replace(settings.bus, manage_streams=False, connect_timeout_s=CONNECTS_WITHIN_S)
    try:
        async with connect_bus(looking) as bus:
            known = {**own_password(settings.bus), **passwords}
            return [
                *await check_bus(bus, clock),
                *await check_strangers(settings.bus),
                *await check_users(settings.bus, known, [pool.pool_name for pool in cluster.resource_pools]),
                *await check_launchers(bus, cluster, clock),
            ]
    except Unavailable as error:
        return [unreachable(error)]
