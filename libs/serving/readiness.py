"""Whether a service can do its work: what it depends on, and why any of that cannot be relied on now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias

import structlog

log = structlog.get_logger()

CHECK_TIMEOUT_S: Final = 3.0
NOT_YET: Final = "not there yet"

Check: TypeAlias = Callable[[], Awaitable[str | None]]
"""Says why something cannot be relied on now; None when it can."""


class Readiness:
    """The dependencies of one service: without those in ``needs`` it is not ready, of others it only tells.

    A dependency that is needed counts as missing until its check is registered, which is what a service that is
    starting looks like.
    """

    def __init__(self, needs: Iterable[str]) -> None:
        self._needs = frozenset(needs)
        self._checks: dict[str, Check] = dict.fromkeys(sorted(self._needs), _not_yet)

    def register(self, dependency: str, check: Check) -> None:
        """Ask ``check`` about a dependency from now on."""
        self._checks[dependency] = check

    async def problems(self) -> dict[str, str | None]:
        """Dependency -> why it cannot be relied on now, None when it can; all are asked at the same time."""
        names = tuple(self._checks)
        found = await asyncio.gather(*(_problem(name, self._checks[name]) for name in names))
        return dict(zip(names, found, strict=True))

    def is_ready(self, problems: dict[str, str | None]) -> bool:
        """Whether the service can work in spite of these problems."""
        return all(problems.get(name) is None for name in self._needs)


async def always_there() -> str | None:
    """Check of what is there once and for all, as soon as it is registered."""
    return None


async def _not_yet() -> str | None:
    return NOT_YET


async def _problem(dependency: str, check: Check) -> str | None:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            problem = await check()
    except TimeoutError:
        problem = f"no answer within {CHECK_TIMEOUT_S:g} s"
    except Exception as error:  # noqa: BLE001  whatever keeps it from answering, it cannot be relied on
        problem = str(error) or repr(error)
    if problem is not None:
        log.info("status.not_ready", dependency=dependency, reason=problem)
    return problem
