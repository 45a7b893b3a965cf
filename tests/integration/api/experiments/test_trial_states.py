"""Trials have followed their experiment when the request is answered, with no scheduler to bring it about."""

from __future__ import annotations

import pytest

from tests.integration.api.experiments.conftest import Api
from tests.integration.api.experiments.test_first_trials import trials_of

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_trials_follow_their_experiment_at_once(api: Api) -> None:
    experiment_id = await api.create()
    ended, *live = [trial["id"] for trial in await trials_of(api, experiment_id)]
    await api.rows.set_trial(ended, state="COMPLETED", end_time=(await api.rows.experiment(experiment_id)).start_time)
    for action, state in (
        ("activate", "ACTIVE"),
        ("pause", "PAUSED"),
        ("activate", "ACTIVE"),
        ("cancel", "STOPPING_CANCELED"),
        ("kill", "STOPPING_KILLED"),
    ):
        await api.ok("POST", f"/api/v1/experiments/{experiment_id}/{action}")
        states = {trial.id: trial.state for trial in await api.rows.trials_of(experiment_id)}
        assert states == {ended: "COMPLETED"} | dict.fromkeys(live, state), action


async def test_a_trial_that_was_killed_is_not_brought_back_by_its_experiment(api: Api) -> None:
    experiment_id = await api.create(activate=True)
    killed, *others = [trial["id"] for trial in await trials_of(api, experiment_id)]
    await api.ok("POST", f"/api/v1/trials/{killed}/kill")
    await api.ok("POST", f"/api/v1/experiments/{experiment_id}/pause")
    states = {trial.id: trial.state for trial in await api.rows.trials_of(experiment_id)}
    assert states == {killed: "STOPPING_KILLED"} | dict.fromkeys(others, "PAUSED")
