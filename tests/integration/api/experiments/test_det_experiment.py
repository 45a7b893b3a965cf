"""The unmodified client against the api: what people type, and what they read."""

from __future__ import annotations

import json
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests.integration.api.experiments.conftest import CONFIG, Api
from tests.integration.api.experiments.det import Det, start_det
from tests.integration.api.experiments.rows import START

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def det(api: Api, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Det]:
    async with start_det(api.url, tmp_path_factory.mktemp("home")) as client:
        yield client


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    (directory / "data").mkdir(parents=True)
    (directory / "train.py").write_text("print('hello')")
    (directory / "train.py").chmod(0o755)
    (directory / "data" / "ignored.bin").write_bytes(b"x")
    (directory / ".detignore").write_text("*.bin")
    (directory / "config.yaml").write_text(CONFIG)
    return directory


async def test_keys_of_maps_are_in_order_wherever_they_are_read(api: Api, det: Det, tmp_path: Path) -> None:
    """PostgreSQL keeps them by length, and code iterates over its hyperparameters."""
    hparams = {"code": 7, "action": "exit", "b": {"zz": 1, "aaa": 2}, "B": 1}
    config = {**yaml.safe_load(CONFIG), "hyperparameters": hparams, "data": {"z": 1, "y y": {"bb": 1, "a a": 2}}}
    experiment_id = await api.create(json.dumps(config))
    trial_id = await api.rows.trial(experiment_id, hparams=hparams)
    run_metadata = {"metadata": {"longer": 1, "k": {"second": 2, "b": 1}}}
    await api.ok("POST", f"/api/v1/runs/{trial_id}/metadata", json=run_metadata)

    described = json.loads((await api.client.get(f"/api/v1/experiments/{experiment_id}")).text)["experiment"]
    trial = json.loads((await api.client.get(f"/api/v1/trials/{trial_id}")).text)["trial"]
    metadata = json.loads((await api.client.get(f"/api/v1/runs/{trial_id}/metadata")).text)["metadata"]
    exported = yaml.safe_load((await det("e", "config", str(experiment_id))).out)
    for shown in (described["config"], trial["hparams"], metadata, exported):
        assert json.dumps(shown) == json.dumps(shown, sort_keys=True)
    assert list(trial["hparams"]) == ["B", "action", "b", "code"]
    assert list(trial["hparams"]["b"]) == ["aaa", "zz"]


async def test_trials_are_listed_as_soon_as_their_experiment_is_created(det: Det, model: Path) -> None:
    created = await det("e", "create", "--paused", str(model / "config.yaml"), str(model))
    number = created.out.split()[-1]
    assert (await det("e", "list-trials", number)).out.count("PAUSED") == 4
    await det("e", "activate", number)
    assert (await det("e", "list-trials", number)).out.count("QUEUED") == 4


async def test_life_of_an_experiment_that_never_runs(api: Api, det: Det, model: Path, tmp_path: Path) -> None:
    created = await det("e", "create", "--paused", str(model / "config.yaml"), str(model))
    number = created.out.removeprefix("Preparing files to send to master...").split()[-1]
    assert f"Created experiment {number}" in created.out
    experiment_id = int(number)

    assert "digits" in (await det("e", "list")).out
    await det("e", "set", "name", number, "renamed")
    await det("e", "set", "description", number, "quite new")
    await det("e", "label", "add", number, "extra")
    await det("e", "label", "remove", number, "one")
    await det("e", "set", "priority", number, "7")
    await det("e", "set", "max-slots", number, "9")
    await det("e", "set", "max-slots", number, "none")
    described = json.loads((await det("e", "describe", "--json", number)).out)[0]["experiment"]
    assert (described["name"], described["description"]) == ("renamed", "quite new")
    assert described["labels"] == ["two", "extra"]
    config = yaml.safe_load((await det("e", "config", number)).out)
    assert (config["name"], config["resources"]["priority"], config["resources"]["max_slots"]) == ("renamed", 7, None)

    await det("e", "download-model-def", number, "--output-dir", str(tmp_path))
    with tarfile.open(tmp_path / f"experiment_{number}_model_def.tgz") as files:
        assert sorted(files.getnames()) == ["config.yaml", "data", "train.py"]
        assert files.getmember("train.py").mode == 0o755

    assert "Activated" in (await det("e", "activate", number)).out
    assert "Paused" in (await det("e", "pause", number)).out
    assert "Experiment is not in terminal state." in (await det("e", "archive", number, code=1)).err
    assert "Killed" in (await det("e", "kill", number)).out
    assert (await api.rows.experiment(experiment_id)).state == "STOPPING_KILLED"

    await api.rows.set_experiment(experiment_id, state="CANCELED", end_time=START)
    await det("e", "wait", number, code=1)
    await det("e", "archive", number)
    assert number not in [line.split("|")[0].strip() for line in (await det("e", "list")).out.splitlines()]
    assert number in [line.split("|")[0].strip() for line in (await det("e", "list", "-a")).out.splitlines()]
    await det("e", "unarchive", number)
    await det("e", "set", "log-retention", number, "--days", "3")
    await det("e", "set", "gc-policy", number, "--yes", *GC_POLICY)
    assert (await api.rows.experiment(experiment_id)).config["checkpoint_storage"]["save_trial_best"] == 0
    await det("e", "delete-tb-files", number)
    await det("e", "delete", "--yes", number)
    assert (await api.rows.experiment(experiment_id)).state == "DELETING"


async def test_trials_and_checkpoints(api: Api, det: Det, tmp_path: Path) -> None:
    experiment_id = await api.create_empty()
    trial_id = await api.rows.trial(experiment_id, state="COMPLETED", total_batches=20)
    best, latest = [
        await api.rows.checkpoint(experiment_id, trial_id, step, resources={"weights": 3}) for step in (10, 20)
    ]
    await api.rows.metric(trial_id, 10, "validation", {"loss": 0.1})
    await api.rows.metric(trial_id, 20, "validation", {"loss": 0.2})
    for uuid in (best, latest):
        directory = api.files / "kept" / uuid
        directory.mkdir(parents=True)
        (directory / "weights").write_text(uuid)
        (directory / "metadata.json").write_text("{}")

    listed = (await det("e", "list-trials", "--csv", str(experiment_id))).out
    assert f"{trial_id},COMPLETED," in listed
    assert best in (await det("e", "list-checkpoints", str(experiment_id), "--best", "1")).out
    assert latest in (await det("t", "describe", str(trial_id))).out
    await det("e", "describe", str(experiment_id))
    await det("c", "describe", best)
    target = tmp_path / "downloaded"
    await det("t", "download", str(trial_id), "--best", "-o", str(target))
    assert (target / "weights").read_text() == latest  # the list begins with the best, but the client takes the last
    await det("c", "download", latest, "-o", str(tmp_path / "other"), "--mode", "master")
    assert (tmp_path / "other" / "weights").read_text() == latest
    await det("c", "rm", "--yes", "--glob", "weights", latest)
    await det("c", "delete", "--yes", best)
    assert [row.uuids for row in await api.rows.gc_requests(experiment_id)] == [[latest], [best]]
    previewed = await det("e", "set", "gc-policy", str(experiment_id), *GC_POLICY)
    assert "will delete 0 checkpoints with validations and 1 checkpoints without" in previewed.out
    message = (await det("t", "kill", "999999", code=1)).err
    assert "trial '999999' not found" in message


async def test_search_preview(det: Det, model: Path) -> None:
    searcher = "name: adaptive_asha, metric: loss, max_trials: 100, max_time: 100, time_metric: batches"
    (model / "config.yaml").write_text(f"{{searcher: {{{searcher}}}, hyperparameters: {{}}, entrypoint: run}}")
    preview = (await det("preview-search", str(model / "config.yaml"))).out
    assert "train for 25 batches" in preview


GC_POLICY = ("--save-experiment-best", "0", "--save-trial-best", "0", "--save-trial-latest", "1")

MISTAKES = [
    ("a: [1", ""),
    ("{entrypoint: run, searcher: {name: single, metric: loss}, speed: 3}", 'additionalProperties "speed" not allowed'),
    ("{searcher: {name: single, metric: loss}}", "managed experiments require entrypoint"),
    ("{entrypoint: run, searcher: {name: single, metric: x}, resources: {resource_pool: moon}}", "resource pool moon"),
    ("{entrypoint: run}", "searcher is a required property"),
]


async def test_mistakes_are_told_to_the_one_who_made_them(det: Det, model: Path) -> None:
    for config, message in MISTAKES:
        (model / "config.yaml").write_text(config)
        failed = await det("e", "create", "--paused", str(model / "config.yaml"), str(model), code=1)
        assert message in failed.err, config
    (model / "config.yaml").write_text(CONFIG)
    unknown = await det("e", "create", "--template", "none", str(model / "config.yaml"), str(model), code=1)
    assert "template 'none' not found" in unknown.err
    for command in ("describe", "kill", "pause", "activate", "archive", "config"):
        assert "experiment '999999' not found" in (await det("e", command, "999999", code=1)).err, command
