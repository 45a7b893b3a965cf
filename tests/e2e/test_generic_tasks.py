"""Generic tasks through the unmodified client: created, forked, paused, killed, and starting others themselves
(docs/reference/tasks-and-cli.md 6)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem

OVER = {"COMPLETED", "CANCELED", "ERROR"}
ENDLESS = "while true; do sleep 0.1; done"


@pytest.fixture
def det(whole_system: WholeSystem) -> Client:
    return whole_system.det("generic", forked=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    context = tmp_path / "context"
    context.mkdir()
    (context / "words.txt").write_text("words of a file")
    return context


def create(det: Client, config: dict[str, Any], *options: str) -> tuple[str, str]:
    """The id of a new task, and what the client printed."""
    path = det.home / f"{uuid4()}.yaml"
    path.write_text(json.dumps({"resources": {"slots": 0}, **config}))
    return _created(det("task", "create", str(path), *options))


def _created(printed: str) -> tuple[str, str]:
    found = re.search(r"Created task (\S+)", printed)
    assert found, printed
    return found[1], printed


def task(look: Looking, ident: str) -> dict[str, Any]:
    found: dict[str, Any] = look.get(f"/tasks/{ident}")["task"]
    return found


def state(look: Looking, ident: str) -> str:
    return str(task(look, ident)["taskState"]).removeprefix("GENERIC_TASK_STATE_")


def wait(look: Looking, ident: str, wanted: str) -> None:
    wait_until(lambda: state(look, ident) in {wanted, *OVER}, what=f"{ident} is {wanted}")
    assert state(look, ident) == wanted


def test_created_with_files_it_prints_what_they_say_and_completes(det: Client, look: Looking, folder: Path) -> None:
    config = {"entrypoint": ["sh", "-c", "cat words.txt; echo; echo it is $DET_TASK_TYPE; id -un"]}
    ident, printed = create(det, config, "--context", str(folder), "-f")
    for line in ("words of a file", "it is GENERIC", f"Scheduling Generic Task {ident}"):
        assert line in printed
    assert "resources exited successfully with a zero exit code" in printed
    assert f"Generic Task {ident} ended by itself after" in printed
    wait(look, ident, "COMPLETED")
    assert "endTime" in task(look, ident)
    assert json.loads(det("task", "config", ident, "--json"))["entrypoint"] == config["entrypoint"]
    assert "words of a file" in det("task", "logs", ident)


def test_one_that_fails_ends_in_error(det: Client, look: Looking) -> None:
    ident, printed = create(det, {"entrypoint": "exit 3"}, "-f")
    assert "crashed: resources failed with non-zero exit code" in printed
    wait(look, ident, "ERROR")
    refused = det.fails("task", "pause", ident)
    assert f"cannot pause task {ident} as it is in state 'ERROR'" in refused


def test_forks_begin_where_their_source_began(det: Client, look: Looking, folder: Path) -> None:
    variables = {"environment": {"environment_variables": ["COLOR=red"]}}
    source, _ = create(det, {"entrypoint": "cat words.txt; echo; echo $COLOR", **variables}, "--context", str(folder))
    fork, printed = _created(det("task", "fork", source, "-f"))
    assert "words of a file" in printed
    assert re.search(r"\bred\b", printed)
    wait(look, fork, "COMPLETED")
    changed = {"environment": {"environment_variables": ["COLOR=blue"]}}
    other, printed = create(det, changed, "--fork", source, "-f")
    assert "blue" in printed
    assert "words of a file" in printed
    assert task(look, other)["forkedFrom"] == source
    wait(look, other, "COMPLETED")
    config = json.loads(det("task", "config", other, "--json"))
    assert config["entrypoint"] == "cat words.txt; echo; echo $COLOR"
    assert config["environment"] == changed["environment"]


def test_paused_it_stops_and_unpaused_it_runs_again(det: Client, look: Looking) -> None:
    again = "case $DET_ALLOCATION_ID in *.1) echo it begins;; *) echo it goes on; sleep 2; exit;; esac"
    ident, _ = create(det, {"entrypoint": f"{again}; {ENDLESS}"})
    wait_until(lambda: "it begins" in det("task", "logs", ident), what="it runs")
    assert f"{ident}.1" in det("task", "list")
    assert f"Paused task: {ident}" in det("task", "pause", ident)
    wait(look, ident, "PAUSED")
    assert f"{ident}.1" not in det("task", "list")
    assert f"cannot pause task {ident} as it is in state 'PAUSED'" in det.fails("task", "pause", ident)
    assert f"Unpaused task: {ident}" in det("task", "unpause", ident)
    assert state(look, ident) == "ACTIVE"
    assert "endTime" not in task(look, ident)
    jobs = look.get("/job-queues-v2", resourcePool="default")["jobs"]
    [job] = [job["full"] for job in jobs if job["full"]["entityId"] == ident]
    assert (job["type"], job["name"]) == ("TYPE_GENERIC", "generic-task")
    wait(look, ident, "COMPLETED")
    lines = det("task", "logs", "-f", ident)
    assert "forcibly killing allocation's remaining resources (reason: user requested pause)" in lines
    assert "it goes on" in lines
    assert [each["allocationId"] for each in task(look, ident)["allocations"]] == [f"{ident}.2", f"{ident}.1"]


def test_task_that_starts_others_is_killed_with_all_of_them(
    det: Client, look: Looking, whole_system: WholeSystem, tmp_path: Path
) -> None:
    """Three levels, each started by the one above with the client of its container, and its files handed down."""
    (tmp_path / "level.sh").write_text(f"""
if [ $1 -lt 3 ]; then
    echo "{{entrypoint: [bash, level.sh, '$(($1 + 1))'], resources: {{slots: 0}}}}" > config.yaml
    "$DET_PYTHON_EXECUTABLE" -m determined.cli task create config.yaml --parent $DET_TASK_ID --inherit_context
fi
{ENDLESS}
""")
    root, _ = create(det, {"entrypoint": ["bash", "level.sh", "1"]}, "--context", str(tmp_path))

    def tree() -> list[str]:
        query = """
            SELECT g.task_id FROM generic_tasks g JOIN tasks t USING (task_id)
            JOIN allocations a ON a.task_id = g.task_id AND a.state = 'RUNNING'
            WHERE root_id = $1 ORDER BY t.start_time
        """
        return [row["task_id"] for row in whole_system.rows(query, root)]

    wait_until(lambda: len(tree()) == 3, what="three levels run")
    first, child, grandchild = tree()
    assert first == root
    assert (task(look, child)["parentId"], task(look, grandchild)["parentId"]) == (root, child)
    det("task", "pause", child)
    for ident in (child, grandchild):
        wait(look, ident, "PAUSED")
    assert state(look, root) == "ACTIVE"
    det("task", "kill", "--root", grandchild)
    for ident in (root, child, grandchild):
        wait(look, ident, "CANCELED")
    refused = det.fails("task", "kill", root)
    assert f"cannot cancel task {root} as it is in state 'CANCELED'" in refused
