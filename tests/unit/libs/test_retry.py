"""A failure that passes is retried, within bounds; any other is raised at once."""

from __future__ import annotations

import pytest

from libs.retry import backoff_s, every, soon_then_every, with_retry


class Work:
    """Fails with each of ``errors`` in turn, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def is_transient(error: Exception) -> bool:
    return isinstance(error, ConnectionError)


async def retried(work: Work, *, timeout_s: float | None = None, max_attempts: int | None = None) -> str:
    return await with_retry(
        work,
        is_transient=is_transient,
        on_retry=lambda error, attempt: None,
        pause_s=every(0),
        timeout_s=timeout_s,
        max_attempts=max_attempts,
    )


async def test_a_failure_that_passes_is_retried_and_told() -> None:
    told: list[tuple[str, int]] = []
    work = Work(ConnectionError("first"), ConnectionError("second"))
    result = await with_retry(
        work,
        is_transient=is_transient,
        on_retry=lambda error, attempt: told.append((str(error), attempt)),
        pause_s=every(0),
    )
    assert result == "done"
    assert told == [("first", 1), ("second", 2)]


async def test_any_other_failure_is_raised_at_once() -> None:
    work = Work(ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        await retried(work)
    assert work.calls == 1


async def test_no_attempt_begins_after_the_timeout() -> None:
    work = Work(*[ConnectionError("away")] * 3)
    with pytest.raises(ConnectionError):
        await retried(work, timeout_s=0)
    assert work.calls == 1


async def test_attempts_are_counted() -> None:
    work = Work(*[ConnectionError("away")] * 5)
    with pytest.raises(ConnectionError):
        await retried(work, max_attempts=3)
    assert work.calls == 3


def test_backoff_doubles_up_to_a_limit() -> None:
    assert [backoff_s(attempt, longest_s=2) for attempt in (1, 2, 3, 4, 5, 5000)] == [0.25, 0.5, 1, 2, 2, 2]


def test_pauses_are_short_at_first_for_what_is_there_in_a_moment() -> None:
    pauses = [soon_then_every(0.5)(attempt) for attempt in range(1, 7)]
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]
    assert soon_then_every(0.5)(10_000) == 0.5
