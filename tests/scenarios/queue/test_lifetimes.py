"""Among nodes that are equally full, a pod gets one that is busy for as long anyway: so others become empty as a whole,
which gangs wait for."""

from __future__ import annotations

from operator import attrgetter

import pytest

from services.scheduler.plan.snapshot import PoolPolicy
from tests.scenarios.queue.notation import Case, check

FOUR = {"a1": 8, "a2": 8, "a3": 8, "a4": 8}
BUSY = "x1 4@a1 ran 0 expected 600; x2 4@a2 ran 0 expected 6000; x3 4@a3 ran 0 expected 60000; x4 8@a4"


def _where(name: str, requests: str, node: str, **fields: object) -> Case:
    return Case(name, FOUR, f"{BUSY}; {requests}", "job", places={"job": node}, **fields)  # type: ignore[arg-type]


CASES = [
    _where("what runs for long goes to where others do", "job 4 expected 50000", "a3"),
    _where("as what it declares says", "job 4 for 50000", "a3"),
    _where("where none runs for as long, the one that is busy longest", "job 4 expected 500000", "a3"),
    _where("a fuller node comes first all the same", "x5 2@a1 ran 0 expected 600; job 2 expected 50000", "a1"),
    Case(
        "what starts in one plan counts for the next one",
        {"a1": 8, "a2": 8},
        "long 4 expected 50000 not a2; short 4 expected 60 not a1; job 4 expected 40000",
        "long short job",
        places={"long": "a1", "short": "a2", "job": "a1"},
    ),
    Case(
        "a gang has its nodes by what runs on each",
        FOUR,
        f"{BUSY}; gang 2x4 expected 5000",
        "gang",
        places={"gang": "a3 a2"},
    ),
    Case(
        "who leaves keeps no node busy",
        {"a1": 8, "a2": 8},
        "x1 4@a1 ran 0 expected 60000 leaving; y1 1@a1 ran 0 expected 60; x2 5@a2 ran 0 expected 6000; "
        "job 3 expected 5000",
        "job",
        places={"job": "a2"},
    ),
    Case(
        "worst fit spreads, whatever runs there",
        FOUR,
        "x1 4@a1 ran 0 expected 600; x2 3@a2 ran 0 expected 600; x3 4@a3 ran 0 expected 60000; x4 8@a4; "
        "job 4 expected 50000",
        "job",
        places={"job": "a2"},
        policy=PoolPolicy(fitting="worst"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_lifetimes(case: Case) -> None:
    check(case)
