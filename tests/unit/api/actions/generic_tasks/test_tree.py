from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.errors import FailedPrecondition
from libs.states.generic_task import AT_REST, GenericTaskState, TaskTrigger, step
from services.api.actions.generic_tasks.tree import (
    CLOSED,
    Tree,
    TreeNode,
    check_may_have_children,
    kill,
    pause,
    reached,
    topmost,
    unpause,
)

S = GenericTaskState


def tree(drawn: str) -> Tree:
    """A tree as ``id<parent state no_pause`` per line; the root has no parent."""
    nodes = {}
    for line in drawn.strip().splitlines():
        place, state, flag = line.split()
        ident, _, parent = place.partition("<")
        no_pause = {"yes": True, "no": False, "-": None}[flag]
        nodes[ident] = TreeNode(task_id=ident, parent_id=parent or None, state=S(state), no_pause=no_pause)
    return nodes


FAMILY = tree("""
    a       ACTIVE     -
    b<a     ACTIVE     no
    c<b     ACTIVE     no
    d<b     COMPLETED  no
    e<d     ACTIVE     no
    f<a     ACTIVE     yes
    g<f     ACTIVE     no
    h<a     PAUSED     no
    i<a     ERROR      no
    j<i     ACTIVE     -
""")


def test_kill_takes_everything_below_except_through_what_is_closed() -> None:
    assert kill(FAMILY, "a") == dict.fromkeys("abcfghj", S.STOPPING_CANCELED)
    assert kill(FAMILY, "b") == dict.fromkeys("bc", S.STOPPING_CANCELED)
    assert kill(FAMILY, "i") == {"j": S.STOPPING_CANCELED}


def test_kill_from_the_root_reaches_what_a_closed_task_does_not_hide() -> None:
    assert kill(FAMILY, "c", from_root=True) == kill(FAMILY, "a")
    assert kill(FAMILY, "e", from_root=True) == kill(FAMILY, "a")


def test_pause_takes_those_below_that_agreed_to_it_and_leaves_the_others_as_they_are() -> None:
    assert pause(FAMILY, "a") == dict.fromkeys("abcg", S.STOPPING_PAUSED)
    assert pause(FAMILY, "j") == {"j": S.STOPPING_PAUSED}


def test_unpause_takes_everything_below_that_is_paused() -> None:
    paused = tree("""
        a       STOPPING_PAUSED -
        b<a     PAUSED          no
        c<b     ACTIVE          no
        d<c     PAUSED          -
        e<b     COMPLETED       no
        f<e     PAUSED          no
    """)
    assert unpause(paused, "a") == dict.fromkeys("abd", S.ACTIVE)
    assert unpause(paused, "d") == {"d": S.ACTIVE}


REFUSALS = [
    (lambda: kill(FAMILY, "d"), "cannot cancel task d as it is in state 'COMPLETED'"),
    (lambda: pause(FAMILY, "d"), "cannot pause task d as it is in state 'COMPLETED'"),
    (lambda: pause(FAMILY, "h"), "cannot pause task h as it is in state 'PAUSED'"),
    (lambda: pause(FAMILY, "i"), "cannot pause task i as it is in state 'ERROR'"),
    (lambda: pause(FAMILY, "f"), "cannot pause task f with `no_pause` set to true"),
    (lambda: unpause(FAMILY, "a"), "cannot unpause task a as it is not in paused state"),
    (lambda: unpause(FAMILY, "d"), "cannot unpause task d as it is not in paused state"),
]


@pytest.mark.parametrize(("ask", "text"), REFUSALS)
def test_refusals_say_why(ask: object, text: str) -> None:
    assert callable(ask)
    with pytest.raises(FailedPrecondition) as refused:
        ask()
    assert str(refused.value) == text


def test_a_task_whose_root_is_gone_is_the_head_of_its_branch() -> None:
    branch = tree("""
        b<gone  ACTIVE  no
        c<b     ACTIVE  no
    """)
    assert topmost(branch, "c") == "b"
    assert kill(branch, "c", from_root=True) == dict.fromkeys("bc", S.STOPPING_CANCELED)


@pytest.mark.parametrize("state", S)
def test_what_was_killed_starts_nothing_any_more(state: GenericTaskState) -> None:
    node = TreeNode(task_id="a", state=state)
    if state in (S.CANCELED, S.STOPPING_CANCELED):
        with pytest.raises(FailedPrecondition, match=f"below task a as it is in state '{state}'"):
            check_may_have_children(node)
    else:
        check_may_have_children(node)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Any tree, with any states: each task has one of those before it above it."""
    size = draw(st.integers(1, 12))
    return {
        str(n): TreeNode(
            task_id=str(n),
            parent_id=str(draw(st.integers(0, n - 1))) if n else None,
            state=draw(st.sampled_from(S)),
            no_pause=draw(st.sampled_from([None, True, False])),
        )
        for n in range(size)
    }


OPERATIONS = {TaskTrigger.KILL: kill, TaskTrigger.PAUSE: pause, TaskTrigger.UNPAUSE: unpause}


@given(trees(), st.sampled_from(list(OPERATIONS)), st.data())
def test_any_operation_follows_the_table_stays_below_and_done_twice_changes_nothing_more(
    drawn: Tree, trigger: TaskTrigger, data: st.DataObject
) -> None:
    task = data.draw(st.sampled_from(sorted(drawn)))
    try:
        changes = OPERATIONS[trigger](drawn, task)
    except FailedPrecondition:
        assert step(drawn[task].state, trigger) is None or drawn[task].no_pause
        return
    below = {node.task_id for node in reached(drawn, task)}
    assert changes.keys() <= below
    assert all(step(drawn[ident].state, trigger) == state != drawn[ident].state for ident, state in changes.items())
    left = below - changes.keys()
    if trigger == TaskTrigger.PAUSE:
        left = {ident for ident in left if drawn[ident].no_pause is False}
    assert all(step(drawn[ident].state, trigger) in (None, drawn[ident].state) for ident in left)
    after = {
        ident: TreeNode(task_id=ident, parent_id=n.parent_id, state=changes.get(ident, n.state), no_pause=n.no_pause)
        for ident, n in drawn.items()
    }
    again = reached(after, task) if after[task].state not in CLOSED else []
    assert all(step(n.state, trigger) in (None, n.state) or n.no_pause is not False for n in again[1:])


@given(trees())
def test_after_a_kill_from_the_root_nothing_that_can_be_reached_wants_to_run(drawn: Tree) -> None:
    try:
        changes = kill(drawn, max(drawn), from_root=True)
    except FailedPrecondition:
        assert drawn["0"].state in CLOSED
        return
    for node in reached(drawn, "0"):
        state = changes.get(node.task_id, node.state)
        assert state == S.STOPPING_CANCELED or (state in AT_REST and state != S.PAUSED)
