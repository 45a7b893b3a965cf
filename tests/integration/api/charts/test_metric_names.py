"""Names of the metrics of a trial: by what they are found, counted and paged."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import text

from libs.db.engine import Database
from tests.harness.app import always, never
from tests.integration.api.tasks.service import Run, set_trial
from tests.integration.api.trials.test_metrics import accepted

NAMES = ["loss", "lr", "layers.0.norm", "layers.0.grad.mean", "layers.10.norm", "Layers", "a_b%c"]


async def ask(owner: httpx.AsyncClient, run: Run, **query: Any) -> Any:
    answer = await owner.get(f"/api/v1/resolute/trials/{run.trial}/metric-names", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def names(owner: httpx.AsyncClient, run: Run, **query: Any) -> list[str]:
    found = await ask(owner, run, **query)
    assert found["pagination"]["total"] == sum(each["count"] for each in found["groups"])
    return [each["name"] for each in found["names"]]


@pytest.fixture
async def reported(client: httpx.AsyncClient, run: Run) -> None:
    await accepted(client, run, step=1, **dict.fromkeys(NAMES, 1))
    await accepted(client, run, "validation", 1, loss=1)


async def test_names_by_group_and_pages(owner: httpx.AsyncClient, run: Run, reported: None) -> None:
    found = await ask(owner, run)
    expected = [("training", name) for name in sorted(NAMES)] + [("validation", "loss")]
    assert [(each["group"], each["name"]) for each in found["names"]] == expected
    assert found["groups"] == [{"group": "training", "count": 7}, {"group": "validation", "count": 1}]
    page = await ask(owner, run, offset=5, limit=2)
    assert page["names"] == found["names"][5:7]
    assert page["pagination"] == {"offset": 5, "limit": 2, "startIndex": 5, "endIndex": 7, "total": 8}
    assert (await ask(owner, run, limit=-2))["names"] == []
    assert await names(owner, run, group="validation") == ["loss"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"prefix": "l"}, ["layers.0.grad.mean", "layers.0.norm", "layers.10.norm", "loss", "lr"]),
        ({"prefix": "a_b%"}, ["a_b%c"]),
        ({"text": "LAYERS"}, ["Layers", "layers.0.grad.mean", "layers.0.norm", "layers.10.norm"]),
        ({"text": "_B%"}, ["a_b%c"]),
        ({"regex": r"\d\.norm$"}, ["layers.0.norm", "layers.10.norm"]),
        ({"regex": "^l", "text": "o", "prefix": "layers"}, ["layers.0.norm", "layers.10.norm"]),
        ({"text": "none"}, []),
    ],
)
async def test_names_that_fit(
    owner: httpx.AsyncClient, run: Run, reported: None, query: dict[str, str], expected: list[str]
) -> None:
    assert await names(owner, run, group="training", **query) == expected


@pytest.mark.parametrize("to_rows", [always, never])
async def test_a_tree_is_read_level_by_level(owner: httpx.AsyncClient, run: Run, reported: None) -> None:
    async def level(prefix: str) -> list[tuple[str, int, bool]]:
        found = await ask(owner, run, prefix=prefix, separator=".", group="training")
        assert (found["names"], found["pagination"]["total"]) == ([], len(found["segments"]))
        return [(each["segment"], each["count"], each["isMetric"]) for each in found["segments"]]

    assert await level("layers.") == [("0", 2, False), ("10", 1, False)]
    assert await level("layers.0.") == [("grad", 1, False), ("norm", 1, True)]
    assert ("layers", 3, False) in await level("")
    assert ("loss", 1, True) in await level("")
    second = await ask(owner, run, prefix="layers.", separator=".", offset=1, limit=1)
    assert [each["segment"] for each in second["segments"]] == ["10"]


@pytest.mark.parametrize("to_rows", [never])
async def test_a_summary_in_rows_has_the_names_of_reports_that_are_not_folded(
    db: Database, owner: httpx.AsyncClient, client: httpx.AsyncClient, run: Run
) -> None:
    """One name is in the summary rows, one only in a report behind them, and one in a report that was rolled back."""
    for step, name in enumerate(("folded", "tail", "rolled back"), start=1):
        await accepted(client, run, step=step, **{name: 1, "both": 1})
    async with db.transaction() as connection:
        for statement in (
            "UPDATE metrics SET archived = true WHERE trial_id = :trial AND total_batches = 3",
            "UPDATE trials SET summary_in_rows = true, summary_metrics = '{}' WHERE id = :trial",
            "INSERT INTO metric_groups (trial_id, metric_group, run_id, folded_step) VALUES (:trial, 'training', 1, 1)"
            " ON CONFLICT (trial_id, metric_group) DO UPDATE SET folded_step = 1",
            "DELETE FROM metric_summaries WHERE summary_id ="
            " (SELECT summary_id FROM metric_groups WHERE trial_id = :trial)",
            "INSERT INTO metric_summaries (summary_id, name_key, name, summary)"
            " SELECT summary_id, metric_name_key(name), name, '{}' FROM metric_groups,"
            " unnest(ARRAY['folded', 'both']) AS name WHERE trial_id = :trial",
        ):
            await connection.execute(text(statement), {"trial": run.trial})
    assert await names(owner, run) == ["both", "folded", "tail"]


async def test_an_expression_is_refused_that_is_wrong_or_takes_too_long(
    db: Database, owner: httpx.AsyncClient, run: Run
) -> None:
    async def refusal(**query: Any) -> str:
        answer = await owner.get(f"/api/v1/resolute/trials/{run.trial}/metric-names", params=query)
        assert answer.status_code == 400, answer.text
        return str(answer.json()["error"]["error"])

    assert (await refusal(regex="(")).startswith("regex: invalid regular expression")
    assert await refusal(regex="a" * 1001) == "regex: must not be longer than 1000 characters"
    assert await refusal(prefix="a" * 1001) == "prefix: must not be longer than 1000 characters"
    # All ways to split an even number of letters into an odd one are looked at.
    await set_trial(db, run.trial, summary_metrics={"avg_metrics": {"a" * 1000 + "b": {"type": "number"}}})
    found = await refusal(regex=r"^(a*)(a*)(a*)\1\2\3ab$")
    assert found == "regex: the search by this regular expression takes too long"
    assert await names(owner, run, regex="^a+b$") == ["a" * 1000 + "b"]


async def test_a_trial_that_is_not_there(owner: httpx.AsyncClient) -> None:
    assert (await owner.get("/api/v1/resolute/trials/999999/metric-names")).status_code == 404
