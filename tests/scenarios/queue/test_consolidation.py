"""What is moved where, so that free slots that are scattered make room for a request."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter

import pytest

from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import HourLimit, PoolPolicy
from tests.scenarios.queue.notation import NOW, Case, check

W = WaitReason
HOURS = HourLimit(holder="group lab", period="day", most_s=36000.0, next_at=NOW + timedelta(hours=9))
PREEMPTS = PoolPolicy(preemption=True)
HALVES = "a 2@n1 mv saved 60; b 2@n2 mv saved 600"
CASES = [
    Case("the one that loses less moves to the other", {"n1": 4, "n2": 4}, f"{HALVES}; h 4", "", {"h": W.PREEMPTING},
         moves="a>h:n2", moves_left=5),
    Case("nothing moves where a pool does not allow it", {"n1": 4, "n2": 4}, f"{HALVES}; h 4", "", {"h": W.NO_ROOM}),
    Case("nor more than may be moved in an hour", {"n1": 4, "n2": 4, "n3": 4},
         "a 1@n1 mv; b 1@n1 mv; c 2@n2 mv; d 2@n3 mv; h 2x4", "", {"h": W.NO_ROOM}, moves_left=0),
    Case("what starts without it moves nothing", {"n1": 4, "n2": 4, "n3": 4}, f"{HALVES}; h 4", "h", moves_left=5),
    Case("nor does what has too few slots even together", {"n1": 4, "n2": 4}, f"{HALVES}; c 1@n1 mv; h 4", "",
         {"h": W.NO_ROOM}, moves_left=5),
    Case("what cannot be moved stays", {"n1": 4, "n2": 4}, "a 2@n1 saved 1; b 2@n2 mv saved 600; h 4", "",
         moves="b>h:n1", moves_left=5),
    Case("what has just started stays", {"n1": 4, "n2": 4}, "a 2@n1 mv ran 30; b 2@n2 mv ran 600; h 4", "",
         moves="b>h:n1", moves_left=5, policy=PoolPolicy(min_runtime=timedelta(minutes=1))),
    Case("what is about to come free counts", {"n1": 4, "n2": 4}, f"{HALVES}; h 4 since 5; x 2@n1 leaving", "",
         {"h": W.PREEMPTING}, moves="a>h:n2", moves_left=5),
    Case("also for those who move", {"n1": 4, "n2": 4}, f"{HALVES}; h 4 since 5; x 2@n2 leaving", "",
         {"h": W.PREEMPTING}, moves="a>h:n2", moves_left=5),
    Case("what may not run elsewhere stays", {"n1": 4, "n2": 4},
         "a 2@n1 mv saved 60 not n2; b 2@n2 mv saved 600; h 4", "", moves="b>h:n1", moves_left=5),
    Case("the cheapest set, small ones beside large ones", {"n1": 4, "n2": 4, "n3": 4},
         "a 3@n1 mv saved 1; b 1@n2 mv saved 600; c 1@n2 mv saved 600; d 2@n3 mv saved 100; h 4", "",
         moves="d>h:n2", moves_left=5),
    Case("two that are small for one that has worked for long", {"n1": 4, "n2": 4},
         "a 1@n1 mv saved 10; b 1@n1 mv saved 10; c 2@n2 mv saved 3000; h 4", "", moves="a>h:n2 b>h:n2", moves_left=5),
    Case("but not if only one may be moved", {"n1": 4, "n2": 4},
         "a 1@n1 mv saved 10; b 1@n1 mv saved 10; c 2@n2 np; h 4", "", {"h": W.NO_ROOM}, moves_left=1),
    Case("a gang gets all of its nodes", {"n1": 4, "n2": 4, "n3": 4, "n4": 4},
         "a 2@n1 mv saved 10; b 2@n2 mv saved 10; c 2@n3 np; d 2@n4 np; h 2x4", "",
         moves="a>h:n4 b>h:n3", moves_left=5),
    Case("or nothing is moved", {"n1": 4, "n2": 4, "n3": 4},
         "a 2@n1 mv; b 2@n2 mv; c 1@n3 mv; h 2x4", "", {"h": W.NO_ROOM}, moves_left=5),
    Case("a gang moves whole", {"n1": 4, "n2": 4, "n3": 4}, "a 2@n1,n2 mv; b 2@n3 np; h 2x4 not n3", "",
         {"h": W.NO_ROOM}, moves_left=5),
    Case("and may come back to a node of its own", {"n1": 4, "n2": 4, "n3": 4},
         "a 2@n1,n2 mv; b 2@n3 np; h 4 not n3", "", {"h": W.PREEMPTING}, moves_left=5, moves="a>h:n3,n2"),
    Case("before the less important leave", {"n1": 4, "n2": 4}, "a 2[50]@n1 mv saved 60; b 2[50]@n2 mv; h 4[10]", "",
         moves="a>h:n2", moves_left=5, policy=PREEMPTS),
    Case("who leaves if nothing can be moved", {"n1": 4, "n2": 4}, "a 2[50]@n1 saved 60; b 2[50]@n2; h 4[10]", "",
         preempts="a>h", moves_left=5, policy=PREEMPTS),
    Case("also for the less important", {"n1": 4, "n2": 4}, f"{HALVES}; h 4[90]", "", moves="a>h:n2", moves_left=5),
    Case("not into what is kept for somebody else", {"n1": 4, "n2": 4, "n3": 4},
         "a 4@n1 np; b 2@n2 mv saved 9; c 2@n3 np; r 2x4[10] since 9 not n2; h 4", "",
         {"h": W.BEHIND_PRIORITY}, moves_left=5),
    Case("those who were moved have their places kept", {"n1": 4, "n2": 4},
         "a 2@n1 mv leaving; b 2@n2 mv; h 4 nominated n1; s 2; a2 2@n2 moving", "",
         {"h": W.PREEMPTING, "s": W.NO_ROOM}, moves_left=5),
    Case("and start there at once", {"n1": 4, "n2": 4}, "b 2@n2 mv; h 4 nominated n1; s 2; a2 2 nominated n2 mv",
         "h a2", {"s": W.NO_ROOM}, moves_left=5),
    Case("or wait there", {"n1": 4, "n2": 4}, "b 2@n2 leaving; c 2@n2; a2 2 nominated n2 mv; s 4@n1", "",
         {"a2": W.MOVED}, moves_left=5),
    Case("what is left of slot-hours may not be enough to come back", {"n1": 4, "n2": 4},
         "a 2@n1 mv under h; b 2@n2 np; h 4", "", {"h": W.NO_ROOM}, moves_left=5, limits={"h": HOURS}),
    Case("not to where maintenance will be", {"n1": 4, "n2": 4}, "a 2@n1 mv for 9; b 2@n2 np; h 4 for 9", "",
         {"h": W.NO_ROOM}, moves_left=5, maintenance="n2 3600 7200"),
    Case("cores are counted, too", {"n1": 4, "n2": 4},
         "a 2@n1 mv cpu 40 saved 5; b 2@n2 mv cpu 30 saved 9; h 4 cpu 40", "",
         moves="b>h:n1", moves_left=5, kinds={"n1": "cpu 80", "n2": "cpu 60"}),
    Case("and what nodes have", {"n1": 4, "n2": 4, "n3": 4},
         "a 2@n1 mv on gpu=x saved 5; b 2@n2 mv on gpu=y saved 9; c 2@n3 np; h 4", "",
         moves="a>h:n3", moves_left=5, kinds={"n1": "gpu=x", "n2": "gpu=y", "n3": "gpu=x"}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_consolidation(case: Case) -> None:
    check(case)
