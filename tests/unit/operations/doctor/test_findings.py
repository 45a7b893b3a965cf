"""What the doctor says of what it has seen, and what to do about it."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deploy.file_systems import FileSystem
from deploy.operations.doctor import pull_secrets
from deploy.operations.doctor.bus import about_streams
from deploy.operations.doctor.clocks import clock_difference
from deploy.operations.doctor.database import about_schema
from deploy.operations.doctor.disks import about_disk, check_disks
from deploy.operations.doctor.findings import Finding, as_json, as_text, exit_code, ok, problem, warning
from deploy.operations.doctor.launchers import about_capacity
from deploy.operations.doctor.pull_secrets import named_secrets
from deploy.operations.doctor.storage import check_storage
from libs.bus.contents.states import StreamStatus
from libs.cluster.config import ClusterConfig
from libs.db.schema.found import Schema
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.subjects import STREAMS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STATE = StreamStatus(messages=3, last_sequence=5, behind=(), server_time=NOW)


def level_and_words(finding: Finding) -> tuple[str, str]:
    return finding.level, f"{finding.says}; {finding.remedy}"


def test_only_problems_make_the_command_fail() -> None:
    fine = [ok("a", "answers"), warning("b", "is behind", remedy="wait")]
    assert exit_code(fine) == 0
    assert exit_code([*fine, problem("c", "is missing", remedy="make it")]) == 1
    assert as_text(fine) == "ok       a: answers\nwarning  b: is behind; wait\n0 problems, 1 warning, 1 ok"
    assert json.loads(as_json(fine))["ok"] is True


def test_every_stream_is_looked_at() -> None:
    states = dict.fromkeys(STREAMS, STATE)
    assert {each.level for each in about_streams(states, ())} == {"ok"}
    del states["LOGS"]
    states["EVENTS"] = msgspec.structs.replace(STATE, behind=("nats-2",))
    said = {each.level: each.says for each in about_streams(states, ("KV_ORDERS",)) if each.level != "ok"}
    assert said == {"problem": "KV_ORDERS does not take messages", "warning": "copies of EVENTS are behind on nats-2"}
    assert about_streams({}, ())[0].says == "EVENTS is missing"


@pytest.mark.parametrize(
    ("schema", "level", "words"),
    [
        (Schema(found="1", newest="1", is_known=True), "ok", "has the schema 1"),
        (Schema(found=None, newest="1", is_known=True), "problem", "run: resolute db upgrade"),
        (Schema(found="2", newest="1", is_known=False), "warning", "of a newer release"),
    ],
)
def test_schema_is_compared_with_the_one_that_is_needed(schema: Schema, level: str, words: str) -> None:
    found, said = level_and_words(about_schema(schema))
    assert found == level
    assert words in said


@pytest.mark.parametrize(("ahead_s", "words"), [(1.5, "agrees"), (40, "40 s ahead of"), (-40, "40 s behind")])
def test_clocks_are_compared(ahead_s: float, words: str) -> None:
    finding = clock_difference("database", theirs=NOW + timedelta(seconds=ahead_s), ours=NOW)
    assert words in finding.says
    assert (finding.level == "ok") is ("agrees" in words)


def capacity(*, age_s: float = 1, slots: int = 2) -> PoolCapacity:
    node = NodeCapacity(name="n", devices=tuple(Device(id=f"{number:03}") for number in range(slots)))
    seen_at = (NOW - timedelta(seconds=age_s)).isoformat().replace("+00:00", "Z")
    return PoolCapacity(pool="p", backend="process", nodes=(node,), seen_at=seen_at)


@pytest.mark.parametrize(
    ("said", "level", "words"),
    [
        (capacity(), "ok", "2 slots of type cpu on 1 nodes"),
        (None, "problem", "was never reported"),
        (capacity(age_s=500), "problem", "500 s ago"),
        (capacity(age_s=-60), "problem", "60 s ahead"),
        (capacity(slots=0), "warning", "kubernetes.assumed_slots"),
    ],
)
def test_silent_launchers_and_empty_pools_are_found(said: PoolCapacity | None, level: str, words: str) -> None:
    found, text = level_and_words(about_capacity("p", said, now=NOW))
    assert found == level
    assert words in text


def test_storage_is_tried_where_it_can_be_seen(tmp_path: Path) -> None:
    here = {"type": "shared_fs", "host_path": "/on/nodes"}
    assert check_storage(here, {"/on/nodes": str(tmp_path)}).level == "ok"
    assert "not seen from here" in check_storage(here, {}).says
    nowhere = check_storage({"type": "azure", "container": "c", "connection_string": "AccountName=n"}, {})
    assert (nowhere.level, "connection_string" in nowhere.says) == ("problem", True)
    assert check_storage(None, {}).level == "warning"


def test_storage_that_is_full_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Names of files are taken; what is written has no room.
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Path("/dev/full").open("wb"))  # noqa: SIM115
    found = check_storage({"type": "shared_fs", "host_path": str(tmp_path)}, {})
    assert (found.level, found.says) == ("problem", f"no file can be written in {tmp_path}: No space left on device")


@pytest.mark.parametrize(
    ("free", "total", "has_files", "level", "words"),
    [
        (50 * 2**30, 100 * 2**30, True, "ok", "/data (51200.0 of 102400.0 MB free) has space"),
        (2**29, 100 * 2**30, True, "warning", "/data (512.0 of 102400.0 MB free) is nearly full"),
        (200 * 2**20, 256 * 2**20, True, "ok", "has space"),
        (2**20, 100 * 2**30, True, "problem", "/data (1.0 of 102400.0 MB free) is full"),
        (50 * 2**30, 100 * 2**30, False, "problem", "/data (no inode free) is full"),
    ],
)
def test_a_file_system_without_space_is_named(
    free: int, total: int, *, has_files: bool, level: str, words: str
) -> None:
    disk = FileSystem(mount_point="/data", free_bytes=free, total_bytes=total, has_files_left=has_files)
    found = about_disk(disk)
    assert found.level == level
    assert words in found.says


def test_disks_are_those_of_a_state_folder(tmp_path: Path) -> None:
    assert check_disks(tmp_path) == []
    (tmp_path / "options.json").write_text(f'{{"postgres_data": "{tmp_path}/postgres"}}')
    assert [each.part for each in check_disks(tmp_path)] == ["disk"]


def test_pull_secrets_are_those_of_pods_in_the_namespace_of_their_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = {"spec": {"imagePullSecrets": [{"name": "registry"}]}}
    document: dict[str, Any] = {
        "resource_manager": {"type": "kubernetes", "max_slots_per_pod": 1, "default_namespace": "base"},
        "resource_pools": [
            {"pool_name": "a", "kubernetes_namespace": "team-a"},
            {"pool_name": "b", "task_container_defaults": {"cpu_pod_spec": {}, "gpu_pod_spec": {}}},
        ],
        "task_container_defaults": {"cpu_pod_spec": pod, "gpu_pod_spec": pod},
    }
    cluster = msgspec.convert(document, ClusterConfig)
    assert set(named_secrets(cluster)) == {("team-a", "registry")}
    monkeypatch.setattr(pull_secrets.shutil, "which", lambda name: None)
    (finding,) = pull_secrets.check_pull_secrets(cluster)
    assert finding.remedy == "run: kubectl --namespace team-a get secret registry"
