"""The bus: whether every stream and bucket is there, whole, and takes messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import structs

from deploy.operations.doctor.clocks import clock_difference
from deploy.operations.doctor.findings import Finding, ok, problem, warning
from libs.bus import Bus, BusSettings, connect_bus
from libs.bus.contents.states import StreamStatus
from libs.clock import Clock
from libs.errors import Unavailable
from libs.events.subjects import STREAMS

PART: Final = "bus"
STRANGER_TRIES_S: Final = 2.0


async def check_bus(bus: Bus, clock: Clock) -> list[Finding]:
    try:
        before = clock.now()
        states = await bus.stream_states()
        ours = before + (clock.now() - before) / 2
        refused = await bus.refused_streams()
    except Unavailable as error:
        return [problem(PART, str(error), remedy="switch JetStream on, and give the services the user of their own")]
    findings = about_streams(states, refused)
    if states:
        newest = max(state.server_time for state in states.values())
        findings.append(clock_difference(PART, theirs=newest, ours=ours))
    return findings


async def check_strangers(settings: BusSettings) -> list[Finding]:
    """Whether whoever has no credentials can do what a service can; nothing to say where we have none ourselves."""
    if settings.user is None and settings.token is None and settings.credentials_file is None:
        return []
    stranger = structs.replace(
        settings,
        user=None,
        password=None,
        password_file=None,
        token=None,
        credentials_file=None,
        name="resolute-stranger",
        manage_streams=False,
        connect_timeout_s=STRANGER_TRIES_S,
    )
    try:
        async with connect_bus(stranger) as bus:
            await bus.stream_states()
    except Unavailable:
        return [ok(PART, "refuses whoever has no credentials")]
    remedy = "give each service and launcher a user of its own, and no rights to others (libs/events/permissions.py)"
    return [problem(PART, "anybody who reaches it may read and write, tokens of tasks too", remedy=remedy)]


def unreachable(error: Unavailable) -> Finding:
    return problem(PART, str(error), remedy="see that NATS runs, and that bus.url, bus.user and its password are right")


def about_streams(states: Mapping[str, StreamStatus], refused: Collection[str]) -> list[Finding]:
    """One finding per stream that must be there. Pure."""
    return [_about(name, states.get(name), is_refused=name in refused) for name in STREAMS]


def _about(name: str, state: StreamStatus | None, *, is_refused: bool) -> Finding:
    if state is None:
        return problem(PART, f"{name} is missing", remedy="start an api or a scheduler, which make it")
    if is_refused:
        remedy = "see that its disk has space, and start it anew: after a full disk it goes on refusing"
        return problem(PART, f"{name} does not take messages", remedy=remedy)
    if state.behind:
        remedy = "see that these servers run and reach each other"
        return warning(PART, f"copies of {name} are behind on {', '.join(state.behind)}", remedy=remedy)
    return ok(PART, f"{name} stores what it is given, and holds {state.messages} messages")
