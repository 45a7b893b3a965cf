"""Whether the processes of a state folder can listen where they are to, asked before any of them is started."""

from __future__ import annotations

import errno
import shlex
import socket
from collections.abc import Iterator
from typing import Final, NamedTuple

from deploy.local.configuration import plan
from deploy.local.failure import CannotStart, PortHeld
from deploy.local.layout import Layout, Options, read_kept
from deploy.local.servers.listeners import PortHolder, foreign, listeners
from deploy.local.servers.ports import cannot_listen
from deploy.local.supervision import processes

API: Final = "the api"
_LOOPBACK: Final = "127.0.0.1"


class ListeningPlace(NamedTuple):
    """Where one of the processes listens."""

    who: str
    host: str
    port: int


def expect_free_ports(layout: Layout, options: Options) -> None:
    """Raises PortHeld, which names the port, who holds it and what to type, or CannotStart for a wrong address.

    Processes of the folder that a killed supervisor left may hold them.
    """
    for place in _places(layout, options):
        error = cannot_listen(place.host, place.port)
        if error is None:
            continue
        if error.errno != errno.EADDRINUSE:
            raise CannotStart(_about_address(place, error))
        found = listeners(place.port)
        ours = own_pids(layout)
        if not any(each.pid in ours for each in found):
            raise PortHeld(_about_holder(place, found[0] if found else None))


def expect_own_ports(layout: Layout, options: Options) -> None:
    """The same for a system that runs: raises PortHeld when others are seen to listen on one of its ports."""
    ours = own_pids(layout)
    for place in _places(layout, options):
        holder = foreign(place.port, ours=ours)
        if holder is None:
            continue
        ours = own_pids(layout)  # one that was started again since they were looked up is ours, too
        if holder.pid not in ours:
            raise PortHeld(_about_holder(place, holder))


def expect_own_api(layout: Layout, options: Options, *, answered: str, stored: str) -> None:
    """Raises PortHeld when the installation whose api answers is not the one of our database.

    answered, stored  ids of installations
    """
    if answered != stored:
        place = ListeningPlace(API, options.host, options.api_port)
        holder = foreign(options.api_port, ours=own_pids(layout))
        raise PortHeld(_about_holder(place, holder, otherwise=f"another Resolute (installation {answered})"))


def _places(layout: Layout, options: Options) -> Iterator[ListeningPlace]:
    yield ListeningPlace(API, options.host, options.api_port)
    yield ListeningPlace("NATS", _LOOPBACK, options.nats_port)
    yield ListeningPlace("PostgreSQL", _LOOPBACK, options.postgres_port)
    yield ListeningPlace("the log intake", options.host if options.kubernetes else _LOOPBACK, options.logs_port)
    for name, port in read_kept(layout.status_ports).items():
        yield ListeningPlace(f"the status page of {name}", _LOOPBACK, port)


def own_pids(layout: Layout) -> set[int]:
    """Processes of the state folder that run."""
    names = (processes.SUPERVISOR, *plan.process_names(layout))
    found = processes.find_all(layout, names)
    return {process.pid for process in found.values() if process is not None}


def _about_holder(
    place: ListeningPlace, holder: PortHolder | None, *, otherwise: str = "a program of somebody else on this machine"
) -> str:
    says = f"port {place.port}, where {place.who} is to listen, is held by {holder or otherwise}"
    if holder is not None and holder.state is not None:
        end_it = f"stop that system with `resolute --state {shlex.quote(str(holder.state))} down`"
    else:
        end_it = "end that program"
    if place.who != API:
        return f"{says}: {end_it}, then repeat the command"
    return f"{says}: take another with `resolute up --port 0`, or {end_it}"


def _about_address(place: ListeningPlace, error: OSError) -> str:
    where = f"{place.host}, port {place.port}"
    if error.errno == errno.EACCES:
        return f"{place.who} may not listen on {where}: only root may below port 1024; choose one with --port 8080"
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return f"{place.who} cannot listen on {where}: --host must be an address of this machine, such as {_LOOPBACK}"
    return f"{place.who} cannot listen on {where}: {error.strerror}"
