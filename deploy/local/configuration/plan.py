"""Plan of what runs with which settings: one entry per process for the supervisor, one settings file per service."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from deploy import nats_configuration
from deploy.local.configuration import bus_users, certificates
from deploy.local.configuration.initial_password import initial_password
from deploy.local.configuration.status_ports import HOST, status_port
from deploy.local.failure import CannotStart
from deploy.local.layout import Layout, Options, write_private
from deploy.local.servers.nats import NatsServer
from deploy.local.servers.postgres import PostgresServer
from libs.cluster.loading import read_cluster_config
from libs.cluster.refusals import in_words
from libs.db.services_role.role import ServicesRole
from libs.errors import InvalidRequest
from libs.secret_files import read_secret

SERVICES: Final = ("api", "scheduler", "launcher", "logs")
PROCESSES: Final = ("postgres", "nats", *SERVICES)
"""What always runs."""
STANDBY: Final = "scheduler-standby"
"""A second scheduler, which takes over when the first dies."""
SERVICES_ROLE: Final = "resolute_services"
POOL: Final = "default"
_POSTGRES_SETTINGS: Final = {
    "shared_buffers": "64MB",
    "max_connections": "100",
    # A commit that the machine (not the database) loses in a power cut is one second of work on a laptop.
    "synchronous_commit": "on",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum_naptime": "60s",
}


def postgres(layout: Layout, options: Options) -> PostgresServer:
    return PostgresServer(
        Path(options.postgres_data),
        log_path=layout.logs / "postgres.log",
        password=options.postgres_password,
        settings=_POSTGRES_SETTINGS,
        port=options.postgres_port,
    )


def services_role(layout: Layout) -> ServicesRole:
    """What services connect to the database as; its password is made when there is none."""
    try:
        password = read_secret(layout.services_password)
    except FileNotFoundError:
        password = secrets.token_urlsafe(24)
        write_private(layout.services_password, password)
    return ServicesRole(user=SERVICES_ROLE, password=password)


def nats(layout: Layout, options: Options) -> NatsServer:
    pools = launchers(layout, options).values()
    password_of = bus_users.passwords(layout, options, pools)
    users = nats_configuration.authorization(password_of, pools, subscribers=options.subscribers)
    return NatsServer(layout.nats, port=options.nats_port, extra_config=users, subscribers=1 + len(options.subscribers))


def process_names(layout: Layout) -> tuple[str, ...]:
    """What the plan of this state folder runs, in the order of starting; the usual processes when there is none."""
    try:
        return tuple(entry["name"] for entry in json.loads(layout.plan_file.read_text()))
    except (FileNotFoundError, ValueError):  # one that is broken is written anew by the next start
        return PROCESSES


def with_standbys(service: str) -> tuple[str, ...]:
    """Every process that acts for a service; one that is to be taken over is taken over from all of them."""
    return (service, STANDBY) if service == "scheduler" else (service,)


def launchers(layout: Layout, options: Options) -> dict[str, str]:
    """Process name -> pool: one launcher per pool of the cluster configuration. Raises CannotStart."""
    if not options.cluster_file(layout).exists():
        return {"launcher": POOL}  # as it will be written
    try:
        pools = read_cluster_config(options.cluster_file(layout))[0].resource_pools
    except InvalidRequest as error:
        raise CannotStart(in_words(options.cluster_file(layout), str(error))) from error
    names = [pool.pool_name for pool in pools]
    return {"launcher" if pool == names[0] else f"launcher-{pool}": pool for pool in names}


def running_pools(layout: Layout) -> dict[str, str]:
    """Process name -> pool, of each launcher in the plan whose settings can be read.

    They are what it runs with, whatever somebody has written into the cluster configuration since.
    """
    found = {}
    for name in process_names(layout):
        if name == "launcher" or name.startswith("launcher-"):
            try:
                found[name] = str(yaml.safe_load((layout.config / f"{name}.yaml").read_text())["pool"])
            except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError):
                continue  # settings that are broken are written anew by the next start
    return found


def services(layout: Layout, options: Options) -> set[str]:
    """Every process but the servers of the database and the bus."""
    return {*SERVICES, STANDBY, *launchers(layout, options)}


def write_cluster(layout: Layout, options: Options) -> None:
    """The cluster configuration, unless somebody wrote one."""
    cluster = options.cluster_file(layout)
    if not cluster.exists():
        cluster.write_text(yaml.safe_dump(_cluster(layout, options), sort_keys=False))


def write_settings(layout: Layout, options: Options) -> None:
    """One YAML file per service below ``config/``."""
    cluster = options.cluster_file(layout)
    bus_users.passwords(layout, options, launchers(layout, options).values())
    bus_users.write_credentials(layout, options)
    for name, settings in _settings(layout, options, cluster).items():
        _write(layout, options, name, settings)
    write_launcher_settings(layout, options, cluster_id="")


def write_launcher_settings(layout: Layout, options: Options, *, cluster_id: str) -> None:
    """Settings of every launcher; those of a cluster need the id of the installation, which the api knows."""
    pools = launchers(layout, options)
    bus_users.passwords(layout, options, pools.values())
    for name, pool in pools.items():
        settings: dict[str, Any] = {
            "pool": pool,
            "bus": bus_users.launcher_bus(layout, options, pool),
            "tasks": {
                "master_url": options.task_master_url,
                "log_intake_url": f"http://{options.task_host}:{options.logs_port}",
                **certificates.for_tasks(options),
            },
        }
        if options.kubernetes is not None:
            settings |= {
                "backend": "kubernetes",
                "cluster_config": str(options.cluster_file(layout)),
                "kubernetes": options.kubernetes.launcher_settings(cluster_id),
            }
        else:
            settings["process"] = {
                "state_dir": str(layout.launcher if name == "launcher" else layout.launcher / name),
                "python": options.python,
                "slots": options.slots,
                "hidden_paths": [str(layout.root), options.postgres_data],
                "mountable_paths": [str(layout.checkpoints)],
            }
        _write(layout, options, name, settings)


def _write(layout: Layout, options: Options, name: str, settings: dict[str, Any]) -> None:
    port = status_port(layout, options, name)
    settings = {**settings, "telemetry": {"status_host": HOST, "status_port": port}}
    write_private(layout.config / f"{name}.yaml", yaml.safe_dump(settings, sort_keys=False))


def _cluster(layout: Layout, options: Options) -> dict[str, Any]:
    if options.kubernetes is not None:
        return options.kubernetes.cluster_config(str(layout.checkpoints))
    return {
        "cluster_name": "local",
        "resource_manager": {"type": "process", "slot_type": "cpu"},
        "resource_pools": [{"pool_name": POOL, "description": "this machine"}],
        "checkpoint_storage": {"type": "shared_fs", "host_path": str(layout.checkpoints)},
    }


def _settings(layout: Layout, options: Options, cluster: Path) -> dict[str, dict[str, Any]]:
    database = {"url": services_role(layout).address(postgres(layout, options).url())}
    scheduler = {
        "database": {**database, "pool_size": 8},
        "bus": bus_users.services_bus(layout, options, "scheduler"),
        "cluster_config": str(cluster),
    }
    return {
        "api": {
            "http": {"host": options.host, "port": options.api_port},
            "initial_user_password": initial_password(layout),
            "database": database,
            "bus": bus_users.services_bus(layout, options, "api"),
            "cluster_config": str(cluster),
        },
        "scheduler": scheduler,
        STANDBY: {**scheduler, "bus": bus_users.services_bus(layout, options, STANDBY)},
        "logs": {
            "intake": {"host": options.host if options.kubernetes else "127.0.0.1", "port": options.logs_port},
            "database": {**database, "pool_size": 6},
            "bus": bus_users.services_bus(layout, options, "logs"),
        },
    }


def build_plan(layout: Layout, options: Options) -> list[dict[str, Any]]:
    """Entries for the supervisor, in the order of starting. Servers must have been prepared."""
    database, bus = postgres(layout, options), nats(layout, options)
    database.prepare()
    bus.prepare()
    plan = [
        _entry(
            layout, "postgres", database.argv, user=database.user, stop_signal="SIGINT", stop_timeout_s=30, needed=True
        ),
        _entry(layout, "nats", bus.argv, needed=True),
    ]
    check = bus_users.storage_check(layout, options, directory=bus.store_directory)
    plan[-1]["storage_check"] = check._asdict()
    for entry, directory in zip(plan, (database.data_directory, bus.store_directory), strict=True):
        entry["directory"] = str(directory)
    modules = {"api": "api", "scheduler": "scheduler", **dict.fromkeys(launchers(layout, options), "launcher")}
    modules["logs"] = "logs"
    if options.standby:
        modules[STANDBY] = "scheduler"
    for name, module in modules.items():
        argv = [sys.executable, "-m", f"services.{module}.main", "--settings", str(layout.config / f"{name}.yaml")]
        plan.append(_entry(layout, name, argv))
        if name == "api":
            variable = "RESOLUTE_HTTP__DESCRIPTOR"
            plan[-1]["listener"] = {"host": options.host, "port": options.api_port, "variable": variable}
    return plan


def _entry(
    layout: Layout,
    name: str,
    argv: list[str],
    *,
    user: str | None = None,
    stop_signal: str = "SIGTERM",
    stop_timeout_s: float = 15,
    needed: bool = False,
) -> dict[str, Any]:
    return {
        "name": name,
        "argv": argv,
        # A folder that everybody may enter: PostgreSQL is not root when we are.
        "cwd": "/",
        "log": str(layout.logs / f"{name}.log"),
        "user": user,
        "stop_signal": stop_signal,
        "stop_timeout_s": stop_timeout_s,
        "needed_by_others": needed,
    }
