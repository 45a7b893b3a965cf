"""What counts as another answer, and what only happened at another moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tests.golden.answers import Answer, without_news
from tests.golden.differences import differences
from tests.golden.reads import Read

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)
ANSWER = Answer(Read("GET", "/a"), 200, {"content-type": "application/json"}, '{"a": 1, "b": [1, 2]}')


@pytest.mark.parametrize(
    "changes",
    [
        {"status": 404},
        {"headers": {"content-type": "text/plain"}},
        {"body": '{"a": 1.0, "b": [1, 2]}'},
        {"body": '{"b": [1, 2], "a": 1}'},
        {"body": '{"a":1,"b":[1,2]}'},
        {"body": '{"a": 1, "b": [2, 1]}'},
        {"body": "not JSON"},
    ],
    ids=str,
)
def test_every_change_of_an_answer_is_a_difference(changes: dict[str, object]) -> None:
    [found] = differences([ANSWER], [msgspec.structs.replace(ANSWER, **changes)])
    assert found.startswith("admin: GET /a\n")
    assert len(found.splitlines()) > 1


def test_equal_answers_are_none() -> None:
    assert differences([ANSWER], [msgspec.structs.replace(ANSWER)]) == []


def test_a_long_difference_is_cut_and_says_so() -> None:
    one, other = (msgspec.structs.replace(ANSWER, body=f"{list(range(start, 100))}") for start in (0, 50))
    [found] = differences([one], [other])
    assert found.splitlines()[-1].endswith(" more lines")
    assert len(found.splitlines()) < 20


def test_lists_of_other_reads_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="shorter"):
        differences([ANSWER], [])


def test_moments_since_the_comparison_began_are_alike() -> None:
    later = (BEGAN + timedelta(seconds=1)).isoformat()
    assert without_news(f'{{"at": "{later}"}}', BEGAN) == '{"at": "NOW"}'
    assert without_news('{"at": "2030-01-01T00:00:00.000001Z"}', BEGAN) == '{"at": "NOW"}'


def test_moments_that_the_database_holds_stay() -> None:
    text = '{"at": "2029-12-31T23:59:59.999999Z", "until": "2029-12-31T23:59:59Z"}'
    assert without_news(text, BEGAN) == text


def test_how_long_something_has_gone_on_is_of_the_moment_and_how_long_it_took_is_not() -> None:
    text = '{"duration":847000000,"wallClockTime":847000000.25,"other":847000000}'
    assert without_news(text, BEGAN) == '{"duration":UNTIL NOW,"wallClockTime":UNTIL NOW,"other":847000000}'
    assert without_news('{"duration":31,"wallClockTime":31.5}', BEGAN) == '{"duration":31,"wallClockTime":31.5}'


def test_each_start_of_a_master_has_an_id_and_each_cluster_one_for_ever() -> None:
    text = '{"masterId":"0a-1","master_id":"0b-2","clusterId":"0c-3"}'
    assert without_news(text, BEGAN) == '{"masterId":"MASTER","master_id":"MASTER","clusterId":"0c-3"}'
