"""Every command of the unmodified ``det`` that people use with experiments, and what they read in its output."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.contract.conftest import Finished
from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem
from tests.programs import configuration, create_arguments, submit, yaml_text


def table(output: str) -> list[dict[str, str]]:
    """Rows of the last table in ``output``, by header; cells that span lines are joined with spaces."""
    lines = output.splitlines()
    rule = max(number for number, line in enumerate(lines) if re.fullmatch(r"[-+]{3,}", line.strip()))
    headers = [header.strip() for header in lines[rule - 1].split("|")]
    rows: list[list[str]] = []
    for line in lines[rule + 1 :]:
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != len(headers):
            break
        if cells[0]:
            rows.append(cells)
        else:
            rows[-1] = [f"{left} {right}".strip() for left, right in zip(rows[-1], cells, strict=True)]
    return [dict(zip(headers, row, strict=True)) for row in rows]


def row(output: str, header: str, value: object) -> dict[str, str]:
    return next(found for found in table(output) if found[header] == str(value))


def test_users_log_in_and_see_who_they_are(whole_system: WholeSystem) -> None:
    det = whole_system.det("login")
    det("user", "login", "admin", answers=("",))
    assert "admin" in det("user", "whoami")
    listed = {user["Username"]: user for user in table(det("user", "list"))}
    assert listed["admin"]["Admin"] == "True"
    assert listed["determined"]["Admin"] == "False"
    det("user", "create", "ada", "--password", "Analytical1")
    det("user", "logout")
    det("user", "login", "ada", answers=("Analytical1",))
    assert "ada" in det("user", "whoami")
    det("user", "logout")
    assert "Invalid username/password" in det.fails("user", "login", "ada", answers=("wrong",))


def test_master_info_and_config(det: Client, whole_system: WholeSystem) -> None:
    info = yaml.safe_load(det("master", "info"))
    assert info["version"] == "0.38.1"
    assert info["clusterName"] == "local"
    assert "only admin" in det.fails("master", "config")
    config = yaml.safe_load(det("-u", "admin", "master", "config", answers=("",)))
    assert config["checkpoint_storage"]["host_path"] == str(whole_system.layout.checkpoints)
    assert yaml.safe_load(det("version"))["master"]["version"] == "0.38.1"


def test_experiment_list(det: Client, finished: Finished) -> None:
    listed = row(det("experiment", "list"), "ID", finished.experiment)
    assert listed["Owner"] == "determined"
    assert listed["Name"] == "finished"
    assert listed["State"] == "COMPLETED"
    assert listed["Progress"] == "100.0%"
    assert row(det("experiment", "list", "--all", "--show_project"), "ID", finished.experiment)["Project"]


def test_experiment_describe(det: Client, finished: Finished) -> None:
    text = det("experiment", "describe", str(finished.experiment), "--metrics")
    assert table(text)[-1]["Validation State"] == "COMPLETED"
    assert "Training Metric: loss" in text
    assert "Validation Metric: loss" in text
    described = json.loads(det("experiment", "describe", str(finished.experiment), "--json"))
    assert described[0]["experiment"]["labels"] == ["contract"]


def test_experiment_trials_and_checkpoints(det: Client, finished: Finished) -> None:
    trial = row(det("experiment", "list-trials", str(finished.experiment)), "Trial ID", finished.trial)
    assert trial["State"] == "COMPLETED"
    assert trial["# of Batches"] == "3"
    checkpoint = row(det("experiment", "list-checkpoints", str(finished.experiment)), "UUID", finished.checkpoint)
    assert checkpoint["State"] == "COMPLETED"
    assert checkpoint["# of Batches"] == "3"
    best = table(det("experiment", "list-checkpoints", "--best", "1", str(finished.experiment)))
    assert float(best[0]["Validation Metric"]) == pytest.approx(1 / 3)


def test_logs_of_experiment_trial_and_task_are_the_same(det: Client, finished: Finished) -> None:
    whole = det("experiment", "logs", str(finished.experiment))
    lines = [line for line in whole.splitlines() if line.startswith("[20")]
    assert [line.rpartition("|| ")[2] for line in lines if "|| step" in line] == ["step 1", "step 2", "step 3"]
    for command in (["trial", "logs", str(finished.trial)], ["task", "logs", finished.task]):
        assert [line for line in det(*command).splitlines() if line.startswith("[20")] == lines
    head = det("trial", "logs", "--head", "4", str(finished.trial))
    assert [line for line in head.splitlines() if line.startswith("[20")] == lines[:4]
    tail = det("trial", "logs", "--tail", "4", str(finished.trial))
    assert [line for line in tail.splitlines() if line.startswith("[20")] == lines[-4:]


def test_trial_describe(det: Client, finished: Finished) -> None:
    text = det("trial", "describe", str(finished.trial), "--metrics")
    assert finished.checkpoint in text
    assert '"loss": 0.5' in text
    described = json.loads(det("trial", "describe", str(finished.trial), "--json"))
    assert described["trial"]["summaryMetrics"]["avg_metrics"]["loss"]["count"] == 3
    steps = [entry["training"]["totalBatches"] for entry in described["workloads"] if entry.get("training")]
    assert steps == [1, 2, 3]


def test_checkpoint_describe_and_download(det: Client, finished: Finished, tmp_path: Path) -> None:
    assert row(det("checkpoint", "describe", finished.checkpoint), "Checkpoint UUID", finished.checkpoint)
    for mode in ("direct", "master"):
        folder = tmp_path / mode
        det("checkpoint", "download", finished.checkpoint, "--mode", mode, "--output-dir", str(folder))
        assert (folder / "step").read_text() == "3"


def test_experiment_download(det: Client, finished: Finished, tmp_path: Path) -> None:
    det("experiment", "download", str(finished.experiment), "--output-dir", str(tmp_path / "best"))
    assert (tmp_path / "best" / finished.checkpoint / "step").read_text() == "3"
    det("experiment", "download-model-def", str(finished.experiment), "--output-dir", str(tmp_path))
    with tarfile.open(tmp_path / f"experiment_{finished.experiment}_model_def.tgz") as archive:
        assert archive.getnames() == ["steps.py"]


def test_experiment_config_is_what_was_submitted_with_defaults(det: Client, finished: Finished) -> None:
    config = yaml.safe_load(det("experiment", "config", str(finished.experiment)))
    assert config["entrypoint"] == "python3 steps.py"
    assert config["resources"]["resource_pool"] == "default"
    assert config["hyperparameters"]["steps"] == {"type": "const", "val": 3}


def test_experiment_set_and_label(det: Client, look: Looking, finished: Finished) -> None:
    experiment = str(finished.experiment)
    det("experiment", "set", "description", experiment, "the first one")
    det("experiment", "label", "add", experiment, "good")
    described = look.experiment(finished.experiment)
    assert described["description"] == "the first one"
    assert sorted(described["labels"]) == ["contract", "good"]
    det("experiment", "label", "remove", experiment, "good")
    assert look.experiment(finished.experiment)["labels"] == ["contract"]
    det("experiment", "set", "name", experiment, "renamed")
    assert look.experiment(finished.experiment)["name"] == "renamed"
    det("experiment", "set", "name", experiment, "finished")


def test_experiment_archive(det: Client, finished: Finished) -> None:
    experiment = str(finished.experiment)
    det("experiment", "archive", experiment)
    assert not [one for one in table(det("experiment", "list")) if one["ID"] == experiment]
    assert "already archived" in det.fails("experiment", "archive", experiment)
    det("experiment", "unarchive", experiment)
    assert row(det("experiment", "list"), "ID", experiment)


def test_paused_experiment_waits_in_no_queue_and_is_canceled_at_once(det: Client, look: Looking) -> None:
    experiment = submit(det, "steps.py", "--paused")
    assert look.experiment(experiment)["state"] == "STATE_PAUSED"
    assert "cannot pause" not in det("experiment", "pause", str(experiment))
    det("experiment", "cancel", str(experiment))
    look.wait(experiment, "STATE_CANCELED")
    assert det.run("experiment", "wait", str(experiment)).code == 1
    assert "terminal state" in det.fails("experiment", "pause", str(experiment))


def test_queue_shows_what_runs_and_kill_ends_it(det: Client, look: Looking) -> None:
    experiment = submit(det, "steps.py", hyperparameters={"steps": 100000, "pause_s": 0.2})
    look.wait(experiment, "STATE_RUNNING")
    job = next(one for one in table(det("job", "list")) if f"({experiment})" in one["Job Name"])
    assert job["Type"] == "TYPE_EXPERIMENT"
    assert job["Slots (acquired/needed)"] == "1/1"
    det("job", "update", job["ID"], "--priority", "17")
    assert next(one for one in table(det("job", "list")) if one["ID"] == job["ID"])["Priority"] == "17"

    task = next(one for one in table(det("task", "list")) if f"(Experiment {experiment})" in one["Name"])
    assert task["Slots Needed"] == "1"
    slots = table(det("slot", "list"))
    assert len(slots) == 8
    assert [one for one in slots if f"(Experiment {experiment})" in one["Task Name"]]
    agents = table(det("agent", "list"))
    assert len(agents) == 1
    assert (agents[0]["Slots"], agents[0]["Enabled"]) == ("8", "True")

    det("experiment", "kill", str(experiment))
    look.wait(experiment, "STATE_CANCELED")
    assert not [one for one in table(det("job", "list")) if f"({experiment})" in one["Name"]]


def test_trial_kill_cancels_the_only_trial(det: Client, look: Looking) -> None:
    experiment = submit(det, "steps.py", hyperparameters={"steps": 100000, "pause_s": 0.2})
    look.wait(experiment, "STATE_RUNNING")
    trial = table(det("experiment", "list-trials", str(experiment)))[0]["Trial ID"]
    det("trial", "kill", trial)
    look.wait(experiment, "STATE_CANCELED")
    assert table(det("experiment", "list-trials", str(experiment)))[0]["State"] == "CANCELED"


def test_delete_removes_rows_and_files(det: Client, look: Looking, whole_system: WholeSystem) -> None:
    experiment = submit(det, "steps.py")
    look.wait(experiment)
    checkpoint = table(det("experiment", "list-checkpoints", str(experiment)))[0]["UUID"]
    files = whole_system.layout.checkpoints / checkpoint
    assert (files / "step").exists()
    assert "in progress" in det("experiment", "delete", "--yes", str(experiment))
    with whole_system.http() as http:
        # A task deletes the files first.
        gone = lambda: http.get(f"/api/v1/experiments/{experiment}").status_code == 404  # noqa: E731
        wait_until(gone, timeout_s=180, what="it is deleted")
        assert http.get(f"/api/v1/checkpoints/{checkpoint}").status_code == 404
    assert not files.exists()
    assert f"experiment '{experiment}' not found" in det.fails("experiment", "describe", str(experiment))
    trials = whole_system.rows("SELECT id FROM trials WHERE experiment_id = $1", experiment)
    lines = whole_system.rows("SELECT 1 FROM task_logs WHERE task_id LIKE $1 LIMIT 1", f"{experiment}.%")
    assert (trials, lines) == ([], [])


def test_workspaces_and_projects(det: Client, look: Looking) -> None:
    det("workspace", "create", "lab")
    assert row(det("workspace", "list"), "Name", "lab")
    assert row(det("workspace", "describe", "lab"), "Name", "lab")
    det("project", "create", "lab", "vision", "--description", "eyes")
    assert row(det("project", "list", "lab"), "Name", "vision")["Description"] == "eyes"
    assert "vision" in det("project", "describe", "lab", "vision")
    experiment = submit(det, "true", "--paused", workspace="lab", project="vision")
    assert str(experiment) in det("project", "list-experiments", "lab", "vision")
    det("experiment", "kill", str(experiment))
    look.wait(experiment, "STATE_CANCELED")
    det("experiment", "move", str(experiment), "Uncategorized", "Uncategorized")
    assert look.experiment(experiment)["projectName"] == "Uncategorized"
    det("project", "delete", "lab", "vision", "--yes")
    assert "vision" not in det("project", "list", "lab")
    det("workspace", "delete", "lab", "--yes")
    assert "lab" not in [one["Name"] for one in table(det("workspace", "list"))]


def test_preview_search(det: Client, tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    searcher = {
        "name": "adaptive_asha",
        "metric": "loss",
        "max_trials": 16,
        "time_metric": "epochs",
        "max_time": 1000,
    }
    path.write_text(yaml_text(configuration("true", searcher=searcher)))
    trials = {one["Training Time"]: one["Trials"] for one in table(det("preview-search", str(path)))}
    # docs/reference/experiments.md 3.6: standard 1000/16
    assert trials == {"train for 62 epochs": "9", "train for 250 epochs": "5", "train for 1000 epochs": "2"}


def test_create_with_follow_shows_the_output_and_ends_well(det: Client) -> None:
    output = det(*create_arguments(det, "echo hello from a trial", "--follow-first-trial"))
    assert "|| hello from a trial" in output
    assert "resources exited successfully with a zero exit code" in output
