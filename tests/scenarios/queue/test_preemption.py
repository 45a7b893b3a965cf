"""Who is preempted for whom: docs/reference/scheduling.md 5.4 with preemption, its story in seven steps, and 15."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter

import pytest

from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PoolPolicy
from tests.scenarios.queue.notation import Case, check

W = WaitReason
PREEMPTS = PoolPolicy(preemption=True)
RESTS = PoolPolicy(preemption=True, min_runtime=timedelta(minutes=1))
A4 = {"a1": 4}
TWO = {"a1": 4, "a2": 4}
EIGHT = {"a": 8}


def asha(first: int, last: int, rest: str) -> str:
    return "; ".join(f"a{number} 1[2]{rest}" for number in range(first, last + 1))


CASES = [
    Case(
        "that nobody leaves for a later one says nothing of an earlier one",
        {"n1": 4},
        "u 2@n1 np; head 4; a 2 expected 200000; v 2@n1; b 2 expected 60",
        "",
        {"a": W.PREEMPTING, "b": W.NO_ROOM},
        preempts="v>a",
        policy=PREEMPTS,
    ),
    Case("nothing to preempt", A4, "t1 4[40]; t6 0[50]", "t1", {"t6": W.TOO_LARGE}, policy=PREEMPTS, aux=0),
    Case(
        "only what the blocked one can take the place of leaves",
        TWO,
        "low 1[50]; med 4[45]@a1; hi 4[40]@a2; hi4 4[40]; hi8 2x4[40]",
        "",
        {"hi4": W.PREEMPTING, "hi8": W.NO_ROOM, "low": W.BEHIND_PRIORITY},
        preempts="med>hi4",
        policy=PREEMPTS,
    ),
    Case(
        "less important work that can be preempted starts behind a blocked request",
        TWO,
        "lowest 1[55]@a1; lower 1[50]; med 1[45]; hi 4[40]@a2; hi2 2[40]; hi8 2x4[40]",
        "hi2 med",
        {"hi8": W.NO_ROOM, "lower": W.PREEMPTING},
        preempts="lowest>lower",
        policy=PREEMPTS,
    ),
    Case(
        "auxiliary tasks are preempted for auxiliary tasks",
        TWO,
        "low 0[50]; med 0[45]@a1; hi 0[40]@a2; hi1 0[40]",
        "",
        {"hi1": W.PREEMPTING, "low": W.NO_AUX_ROOM},
        preempts="med>hi1",
        aux=1,
        policy=PREEMPTS,
    ),
    Case(
        "the same priority: only those behind in the queue leave",
        TWO,
        "j1 1[42]@a1; j3 4[42]; j2 4[42]@a2",
        preempts="j2>j3",
        policy=PREEMPTS,
    ),
    Case(
        "what was moved ahead takes the place of those that it passed",
        TWO,
        "j1 1[42]@a1; j2 4[42]@a2; j3 4[42] at 0.5",
        preempts="j2>j3",
        policy=PREEMPTS,
    ),
    Case(
        "a victim that has come back preempts nobody for a while",
        A4,
        "low 4[50]@a1; mid 4[45] back 1 ago 59",
        "",
        {"mid": W.NO_ROOM},
        policy=RESTS,
    ),
    Case("and then does", A4, "low 4[50]@a1; mid 4[45] back 1 ago 60", preempts="low>mid", policy=RESTS),
    Case(
        "after the third time it waits four times as long",
        A4,
        "low 4[50]@a1; mid 4[45] back 3 ago 239",
        "",
        {"mid": W.NO_ROOM},
        policy=RESTS,
    ),
    Case("but not for ever", A4, "low 4[50]@a1; mid 4[45] back 99 ago 3600", preempts="low>mid", policy=RESTS),
    Case("it starts at once where there is room", A4, "mid 4[45] back 9", "mid", policy=RESTS),
    Case(
        "what is like it, but has not been preempted, does not wait with it",
        A4,
        "low 4[50]@a1; mid 4[45] back 1; other 4[45]",
        "",
        {"mid": W.NO_ROOM},
        preempts="low>other",
        policy=RESTS,
    ),
    Case(
        "on slots that are kept for others it would only be asked to leave again",
        TWO,
        "hi 4[40]@a1 np; hi8 2x4[40]; back 1[45] back 1; new 1[45]",
        "new",
        {"back": W.BEHIND_PRIORITY},
        policy=RESTS,
    ),
    Case(
        "where nothing is safe for a while, a victim that comes back need not wait",
        A4,
        "low 4[50]@a1; mid 4[45] back 9",
        preempts="low>mid",
        policy=PREEMPTS,
    ),
    Case(
        "one victim is enough, and the least work is lost",
        TWO,
        "j3 4[42]; j1 1[42]@a1; j2 4[42]@a2",
        preempts="j1>j3",
        policy=PREEMPTS,
        instead_of="j2, the last in the queue; j1 holds a quarter of its slots (15)",
    ),
    Case(
        "who is ahead in the queue stays, and then nobody leaves in vain",
        TWO,
        "j1 1[42]@a1; j3 2x4[42]; j2 4[42]@a2",
        "",
        {"j3": W.NO_ROOM},
        policy=PREEMPTS,
    ),
    # The story in seven steps: one node with 8 slots
    Case(
        "step 1: as many trials start as there are slots",
        EIGHT,
        asha(10, 29, ""),
        " ".join(f"a{number}" for number in range(10, 18)),
        policy=PREEMPTS,
    ),
    Case(
        "step 2: four leave for a distributed job, the last of the queue",
        EIGHT,
        f"{asha(10, 17, '@a')}; dist 4[1]",
        "",
        {"dist": W.PREEMPTING},
        preempts="a14>dist a15>dist a16>dist a17>dist",
        policy=PREEMPTS,
    ),
    Case(
        "step 2, later: it starts where they have left",
        EIGHT,
        f"{asha(10, 13, '@a')}; dist 4[1] nominated a; {asha(14, 17, '')}",
        "dist",
        policy=PREEMPTS,
    ),
    Case(
        "step 3: a notebook of less importance waits",
        EIGHT,
        f"{asha(10, 13, '@a')}; dist 4[1]@a; notebook 1[3] np; {asha(14, 17, '')}",
        "",
        {"notebook": W.BEHIND_PRIORITY, "a14": W.NO_ROOM},
        policy=PREEMPTS,
    ),
    Case(
        "step 4: and starts when nothing else wants the slots", EIGHT, "notebook 1[3] np", "notebook", policy=PREEMPTS
    ),
    Case(
        "step 5: a notebook is not preempted",
        EIGHT,
        "notebook 1[3]@a np; dist 8[1]",
        "",
        {"dist": W.NO_ROOM},
        policy=PREEMPTS,
    ),
    Case(
        "step 6: what can be preempted starts meanwhile",
        EIGHT,
        "notebook 1[3]@a np; dist 8[1]; other 4[2]",
        "other",
        {"dist": W.NO_ROOM},
        policy=PREEMPTS,
    ),
    Case(
        "step 7: and leaves when the notebook is gone",
        EIGHT,
        "dist 8[1]; other 4[2]@a",
        "",
        {"dist": W.PREEMPTING},
        preempts="other>dist",
        policy=PREEMPTS,
    ),
    # 15, and what a user expects
    Case(
        "tasks on other nodes are not preempted needlessly",
        {"a": 4, "b": 4},
        "y 4[50]@b; x 1[50]@a; z 1[50]@a; new 3[40]",
        preempts="z>new",
        policy=PREEMPTS,
    ),
    Case(
        "nobody leaves whose place is of no use",
        {"a": 4, "b": 4},
        "x 1[50]@a saved 1; y 4[50]@b; new 4[40]; z 2[40]@a np; w 1[40]@a np",
        preempts="y>new",
        policy=PREEMPTS,
    ),
    Case(
        "whose last checkpoint is youngest leaves first",
        EIGHT,
        "x 4[50]@a ran 9000 saved 60; y 4[50]@a ran 600; new 4[40]",
        preempts="x>new",
        policy=PREEMPTS,
    ),
    Case(
        "a gang leaves whole",
        TWO,
        "gang 2x4[50]@a1,a2; new 4[40]",
        preempts="gang>new",
        policy=PREEMPTS,
    ),
    Case(
        "what has only begun is left alone",
        A4,
        "x 4[50]@a1 ran 30; new 4[40]",
        "",
        {"new": W.NO_ROOM},
        policy=PoolPolicy(preemption=True, min_runtime=timedelta(minutes=1)),
    ),
    Case(
        "one wave for one placement: while they leave, nobody else is asked",
        EIGHT,
        "x 4[50]@a leaving; y 4[50]@a; new 4[40] nominated a",
        "",
        {"new": W.PREEMPTING},
        policy=PREEMPTS,
    ),
    Case(
        "room that comes free anyway is waited for",
        EIGHT,
        "x 4[50]@a leaving; y 4[50]@a; new 4[40]",
        "",
        {"new": W.NO_ROOM},
        policy=PREEMPTS,
    ),
    Case(
        "the places of victims are for whom they left, not for whom comes later",
        EIGHT,
        "y 4[50]@a; new 4[40] nominated a; later 4[30] np",
        "new",
        {"later": W.PREEMPTING},
        preempts="y>later",
        policy=PREEMPTS,
    ),
    Case(
        "places on a node that is gone are given up",
        {"b": 4},
        "new 4[40] nominated a",
        "new",
        places={"new": "b"},
        policy=PREEMPTS,
    ),
    *(
        Case(
            f"the other half of a gang that leaves is on a node out of service, {name}",
            {"a": 4, "b": 4},
            f"v 4[50]@a,b; {name} 4[40]",
            preempts=f"v>{name}",
            policy=PREEMPTS,
            unavailable="b",
        )
        for name in ("hi", "hi2", "hi3", "x", "y")
    ),
    Case(
        "who leaves for one reason is not asked again for another",
        A4,
        "j:w 1[50]@a1; k:w 1[50]@a1; l:w 1[50]@a1; m:w 1[50]@a1; hi 4[40]",
        "",
        {"hi": W.PREEMPTING},
        preempts="m> l> k>hi j>hi",
        max_slots={"w": 2},
        policy=PREEMPTS,
    ),
    Case(
        "who leaves anyway counts when max_slots was lowered",
        EIGHT,
        "t1:j 1[42]@a; t2:j 1[42]@a; t3:j 1[42]@a; t4:j 1[42]@a np leaving",
        preempts="t3>",
        max_slots={"j": 2},
    ),
    Case(
        "max_slots that was lowered: the newest leave",
        EIGHT,
        "t1:j 1[42]@a; t2:j 1[42]@a; t3:j 1[42]@a; t4:j 1[42]@a",
        preempts="t3> t4>",
        max_slots={"j": 2},
        instead_of="the oldest, and under fair share only (5.3)",
    ),
    Case(
        "nobody leaves for a job over its max_slots",
        A4,
        "x 4[50]@a1; t1:j 4[40]",
        "",
        {"t1": W.JOB_MAX_SLOTS},
        max_slots={"j": 2},
        policy=PREEMPTS,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_preemption(case: Case) -> None:
    check(case)
