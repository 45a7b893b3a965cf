"""A history through the real api, and through the reference beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import asyncpg
import httpx

from tests.harness import eventually
from tests.integration.api.metrics.histories import AtOnce, Happening, Restart
from tests.integration.api.metrics.reference import ReferenceTrial, Report
from tests.integration.api.tasks.service import Run

TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'resolute%'
"""
OF_ANOTHER_RUN = "invalid run id"


class Post(Protocol):
    """A request to one of the replicas; raises httpx.TransportError while it is away."""

    def __call__(self, replica: int, path: str, body: Any, headers: dict[str, str], /) -> Awaitable[httpx.Response]: ...


class Player:
    """Training code that repeats what was not answered, as the harness does.

    driver     a connection of its own, which nobody ends
    interrupt  what happens to the replicas when a history says so; in place of it their connections end
    meanwhile  what happens to the trial while its reports are under way
    """

    def __init__(
        self,
        post: Post,
        driver: asyncpg.Connection,
        *,
        interrupt: Callable[[], Awaitable[None]] | None = None,
        meanwhile: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        self._post = post
        self._driver = driver
        self._interrupt = interrupt or self._terminate
        self._meanwhile = meanwhile
        self.interrupted = 0
        self.repeated = 0

    async def play(self, run: Run, happenings: Sequence[Happening]) -> ReferenceTrial:
        """Let a trial live through a history; returns what the reference makes of it."""
        reference = ReferenceTrial()
        for happening in happenings:
            async with asyncio.TaskGroup() as tasks:
                if self._meanwhile is not None:
                    tasks.create_task(self._happen(self._meanwhile, run))
                match happening:
                    case AtOnce(reports, cut):
                        answers = await self._all(run, reports, cut)
                        _take(reference, reports, answers)
                    case Restart(late, early):
                        await self._restart(run, reference, late, early)
        return reference

    async def _happen(self, meanwhile: Callable[[int], Awaitable[None]], run: Run) -> None:
        await meanwhile(run.trial)

    async def _restart(
        self,
        run: Run,
        reference: ReferenceTrial,
        late: Sequence[tuple[int, Report]],
        early: Sequence[tuple[int, Report]],
    ) -> None:
        under_way = asyncio.create_task(self._all(run, late, None))
        await asyncio.sleep(0.002)
        await self._driver.execute("UPDATE trials SET run_id = $2 WHERE id = $1", run.trial, reference.run + 1)
        answers = await self._all(run, early, None)
        # What was accepted of the run that is over counts as if it had come before the end of the run.
        for (replica, report), answer in zip(late, await under_way, strict=True):
            if not (answer or "").startswith(OF_ANOTHER_RUN):
                _take(reference, [(replica, report)], [answer])
        reference.restart()
        _take(reference, early, answers)

    async def _all(self, run: Run, reports: Sequence[tuple[int, Report]], cut: float | None) -> list[str | None]:
        sending = [asyncio.create_task(self._send(run, replica, report)) for replica, report in reports]
        if cut is not None:
            await asyncio.sleep(cut)
            await self._interrupt()
            self.interrupted += 1
        return list(await asyncio.gather(*sending))

    async def _send(self, run: Run, replica: int, report: Report) -> str | None:
        """Send a report until it is answered; returns why it was refused, or None."""
        body = {
            "group": report.group,
            "metrics": {
                "trialId": run.trial,
                "trialRunId": report.run,
                "stepsCompleted": report.step,
                "reportTime": report.time.isoformat(),
                "metrics": {"avgMetrics": report.avg, "batchMetrics": report.batches},
            },
        }
        answer: httpx.Response | None = None

        async def answered() -> bool:
            nonlocal answer
            try:
                answer = await self._post(replica, f"/api/v1/trials/{run.trial}/metrics", body, run.headers)
            except httpx.TransportError:
                self.repeated += 1
                return False
            if answer.status_code in (200, 400):
                return True
            assert answer.status_code == 503, answer.text
            self.repeated += 1
            return False

        await eventually(answered, timeout_s=60)
        assert answer is not None
        return None if answer.status_code == 200 else str(answer.json()["error"]["error"])

    async def _terminate(self) -> None:
        await self._driver.fetchval(TERMINATE)


def _take(reference: ReferenceTrial, reports: Sequence[tuple[int, Report]], answers: Sequence[str | None]) -> None:
    for (_, report), answer in zip(reports, answers, strict=True):
        assert answer == reference.report(report), report
