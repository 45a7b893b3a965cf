"""Each leaf command of ``det experiment`` and ``det trial``: for what is not there, and without a login; those that
``test_det_experiment.py`` leaves out, for what is there too."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.harness.installed_client import client_python
from tests.harness.processes import REPOSITORY
from tests.integration.api.experiments.conftest import CONFIG, Api
from tests.integration.api.experiments.det import Det, start_det
from tests.integration.api.experiments.rows import START
from tests.scenarios.det_leaves import ALIASES, AT_THE_END, CREATES, LEAVES, OF_LIVE, Leaf

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = [*LEAVES, *OF_LIVE, *AT_THE_END]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def det(api: Api, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Det]:
    async with start_det(api.url, tmp_path_factory.mktemp("home")) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stranger(api: Api, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Det]:
    """A client whose login is over."""
    home = tmp_path_factory.mktemp("nobody")
    async with start_det(api.url, home, DET_USER="determined", DET_USER_TOKEN="no-token-of-ours") as client:
        yield client


def values(leaf: Leaf, experiment: int, trial: int, out: Path) -> dict[str, object]:
    return {"id": experiment if leaf.noun == "experiment" else trial, "out": out}


async def test_what_goes_on(api: Api, det: Det, tmp_path: Path) -> None:
    experiment = await api.create(CONFIG, activate=False)
    for leaf in OF_LIVE:
        ran = await det(*leaf.typed(**values(leaf, experiment, 0, tmp_path)))
        assert leaf.said in ran.out, leaf
    row = await api.rows.experiment(experiment)
    resources = row.config["resources"]
    assert (row.state, resources["max_slots"], resources["weight"], resources["priority"]) == ("PAUSED", 3, 2, 7)


async def test_what_makes_another_of_it(api: Api, det: Det, tmp_path: Path) -> None:
    single = "{name: digits, entrypoint: run, searcher: {name: single, metric: loss}}"
    experiment = await api.create(single)
    (trial,) = await api.rows.trials_of(experiment)
    await api.rows.set_trial(trial.id, state="ERROR", end_time=START)
    for leaf in AT_THE_END:
        if leaf.words in ("continue", "delete"):
            await api.rows.set_experiment(experiment, state="ERROR", end_time=START)
        ran = await det(*leaf.typed(**values(leaf, experiment, trial.id, tmp_path)))
        assert leaf.said in ran.out, leaf
    assert (await api.rows.experiment(experiment)).state == "DELETING"


@pytest.mark.parametrize("leaf", [leaf for leaf in ALL if "{id}" in leaf.options], ids=" ".join)
async def test_what_is_not_there(det: Det, leaf: Leaf, tmp_path: Path) -> None:
    ran = await det(*leaf.typed(**values(leaf, 999_999, 999_999, tmp_path)), code=1)
    assert "not found" in ran.err, ran
    assert "999999" in ran.err, ran
    assert "Traceback" not in ran.err, ran


@pytest.mark.parametrize("leaf", ALL, ids=" ".join)
async def test_nothing_happens_without_a_login(api: Api, stranger: Det, leaf: Leaf, tmp_path: Path) -> None:
    experiment = await api.create(CONFIG, activate=False)
    (trial, *_) = await api.rows.trials_of(experiment)
    before = await api.rows.experiment(experiment), await api.rows.trials_of(experiment)
    ran = await stranger(*leaf.typed(**values(leaf, experiment, trial.id, tmp_path)), code=1)
    assert "Unauthenticated" in ran.err, ran
    assert (await api.rows.experiment(experiment), await api.rows.trials_of(experiment)) == before


def _commands() -> Any:
    # -P: beside the program there is a folder ``determined`` that is not the client.
    program = [client_python(), "-P", "-W", "ignore", REPOSITORY / "tests/harness/client_commands.py"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)["commands"]


async def test_no_leaf_is_left_out() -> None:
    commands = _commands()
    leaves = {name for noun in ("experiment", "trial") for name in _leaves(noun, commands[noun])}
    there = {name for name in leaves if not name.endswith(" help")}
    assert {ALIASES.get(name, name) for name in there} == {leaf.name for leaf in ALL} | {CREATES}


def _leaves(name: str, command: dict[str, Any]) -> list[str]:
    below = [found for word, part in command["commands"].items() for found in _leaves(f"{name} {word}", part)]
    return below or [name]
