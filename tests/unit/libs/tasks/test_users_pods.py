from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from libs.events.orders import UsersPod
from libs.tasks.users_pods import MOST_SENTENCES, continued, from_column, lines_at_first_start, to_column, users_pod

SENTENCES = st.lists(st.text(max_size=20), max_size=50)


@given(SENTENCES, st.booleans())
def test_what_is_stored_is_read_back_and_has_a_bound(asks: list[str], judged: bool) -> None:
    made = users_pod({"spec": {"hostPID": True}}, judged=judged, asks=asks)
    assert from_column(to_column(made)) == made
    assert len(made.asks) == min(len(asks), MOST_SENTENCES + 1)
    assert len(lines_at_first_start(made)) == len(made.asks)


def test_an_experiment_that_goes_on_keeps_what_users_wrote_before() -> None:
    stored = to_column(users_pod({"spec": {"nodeName": "a", "hostPID": True}}, judged=False, asks=["one", "two"]))
    override = users_pod({"spec": {"nodeName": "b"}}, judged=True, asks=["two", "three"])
    assert continued(stored, override) == UsersPod(
        pod={"spec": {"nodeName": "b", "hostPID": True}}, judged=False, asks=("one", "two", "three")
    )


def test_of_an_experiment_from_before_only_the_override_is_known() -> None:
    override = users_pod({"spec": {"nodeName": "b"}}, judged=True)
    assert continued(None, override) == override
    assert from_column(None) is None
    assert lines_at_first_start(None) == []


def test_the_line_names_the_setting_and_the_level() -> None:
    (line,) = lines_at_first_start(users_pod({}, judged=True, asks=["environment.pod_spec.spec.hostPID is bad"]))
    assert line == "security.pod_spec: baseline would refuse this task: environment.pod_spec.spec.hostPID is bad"
