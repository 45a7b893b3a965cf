"""What a task posts is done again while the database is away, and only then."""

from __future__ import annotations

import pytest

from libs.errors import InvalidRequest, Unavailable
from services.api.http.retry import retry_while_away


class Work:
    """Fails with each of ``errors`` in turn, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.times = 0

    async def __call__(self) -> str:
        self.times += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_a_lost_database_is_waited_for() -> None:
    work = Work(ConnectionRefusedError(111, "refused"), ConnectionResetError(104, "reset"))
    assert await retry_while_away(work) == "done"
    assert work.times == 3


async def test_retries_have_an_end() -> None:
    work = Work(*[ConnectionRefusedError(111, "refused")] * 3)
    with pytest.raises(ConnectionRefusedError):
        await retry_while_away(work, give_up_after_s=0)
    assert work.times == 1


@pytest.mark.parametrize("error", [InvalidRequest("no"), Unavailable("too many reports wait"), ValueError("a bug")])
async def test_an_answer_is_an_answer(error: Exception) -> None:
    work = Work(error)
    with pytest.raises(type(error)):
        await retry_while_away(work)
    assert work.times == 1
