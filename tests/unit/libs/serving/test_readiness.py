from __future__ import annotations

import asyncio

import pytest

from libs.errors import Unavailable
from libs.serving import readiness
from libs.serving.readiness import NOT_YET, Readiness, always_there


async def nobody_answers() -> str | None:
    raise Unavailable("nobody answers")


async def full() -> str | None:
    return "the disk is full"


async def test_a_service_is_ready_when_everything_it_needs_is_registered_and_there() -> None:
    status = Readiness(("database", "bus"))
    status.register("database", always_there)
    problems = await status.problems()
    assert problems == {"database": None, "bus": NOT_YET}
    assert not status.is_ready(problems)
    status.register("bus", always_there)
    assert status.is_ready(await status.problems())


@pytest.mark.parametrize(
    ("check", "reason"), [(full, "the disk is full"), (nobody_answers, "nobody answers")], ids=["said", "raised"]
)
async def test_the_reason_is_told_and_only_what_is_needed_decides(check: readiness.Check, reason: str) -> None:
    for needs, is_ready in ((("bus",), False), ((), True)):
        status = Readiness(needs)
        status.register("bus", check)
        problems = await status.problems()
        assert (problems, status.is_ready(problems)) == ({"bus": reason}, is_ready)


async def test_what_does_not_answer_in_time_is_not_there_and_holds_no_other_check_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "CHECK_TIMEOUT_S", 0.01)

    async def silent() -> str | None:
        await asyncio.Event().wait()
        raise AssertionError

    status = Readiness(())
    status.register("bus", silent)
    status.register("database", always_there)
    assert await status.problems() == {"bus": "no answer within 0.01 s", "database": None}
