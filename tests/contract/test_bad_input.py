"""What is wrong is refused with the status and the words of the specification, and leaves nothing behind."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.conftest import Finished
from tests.harness.client import Client
from tests.harness.no_tls import NO_TLS
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem
from tests.programs import configuration, yaml_text

TABLES = (
    "experiments",
    "model_definitions",
    "trials",
    "trial_tasks",
    "tasks",
    "jobs",
    "allocations",
    "metrics",
    "checkpoints",
    "workspaces",
    "projects",
    "users",
)


def counts(system: WholeSystem) -> dict[str, int]:
    query = " UNION ALL ".join(f"SELECT '{table}' AS name, count(*) AS rows FROM {table}" for table in TABLES)
    return {row["name"]: row["rows"] for row in system.rows(query)}


@pytest.fixture(scope="module")
def http(whole_system: WholeSystem, finished: Finished) -> Iterator[httpx.Client]:
    """A connection to a system in which nothing happens by itself."""
    active = "SELECT 1 FROM allocations WHERE NOT exit_processed LIMIT 1"
    wait_until(lambda: not whole_system.rows(active), what="everything of other tests has ended")
    with whole_system.http() as client:
        yield client


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(whole_system: WholeSystem, http: httpx.Client) -> Iterator[None]:
    before = counts(whole_system)
    yield
    assert counts(whole_system) == before
    assert http.get("/api/v1/me").json()["user"]["username"] == "determined"


def error(response: httpx.Response) -> tuple[int, int, str]:
    """Status, gRPC code and text."""
    body = response.json()["error"]
    assert isinstance(body["reason"], str)
    return response.status_code, body["code"], body["error"]


@dataclass(frozen=True)
class Refused:
    name: str
    config: str
    says: str


def changed(**changes: Any) -> str:
    return yaml_text(configuration("true", **changes))


REFUSED = [
    Refused("broken YAML", "name: [unclosed", "line 2, column 1"),
    Refused("no mapping", "- a\n- list", "invalid experiment configuration"),
    Refused("unknown field", changed(sloots=1), 'additionalProperties "sloots" not allowed'),
    Refused("unknown nested field", changed(resources={"slots": 1}), 'additionalProperties "slots" not allowed'),
    Refused("mistyped field", changed(max_restarts="many"), "<config>.max_restarts"),
    Refused("mistyped nested field", changed(resources={"slots_per_trial": "two"}), "slots_per_trial"),
    Refused(
        "unknown pool",
        changed(resources={"resource_pool": "moon"}),
        "resource pool moon does not exist or is not available to workspace ID 1",
    ),
    Refused("impossible slots", changed(resources={"slots_per_trial": 1000}), "invalid resource configuration"),
    Refused("missing entrypoint", changed(entrypoint=None), "managed experiments require entrypoint"),
    Refused("unknown searcher", changed(searcher={"name": "best", "metric": "loss"}), "adaptive_asha"),
    Refused("missing searcher metric", changed(searcher={"name": "single"}), "metric"),
    Refused(
        "removed searcher",
        changed(searcher={"name": "adaptive", "metric": "loss"}),
        "searcher has been removed and is not valid for new experiments",
    ),
    Refused(
        "bounds the wrong way round",
        changed(hyperparameters={"x": {"type": "int", "minval": 3, "maxval": 2}}),
        "minval must be less than maxval",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=attrgetter("name"))
def test_a_configuration_is_refused_over_rest(http: httpx.Client, case: Refused) -> None:
    body = {"config": case.config, "modelDefinition": [], "activate": True}
    status, code, text = error(http.post("/api/v1/experiments", json=body))
    assert (status, code) == (400, 3)
    assert case.says in text


@pytest.mark.parametrize("case", REFUSED[2:9], ids=attrgetter("name"))
def test_a_configuration_is_refused_by_det_with_the_same_words(det: Client, case: Refused, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(case.config)
    assert case.says in det.fails("experiment", "create", str(path))


def test_a_context_over_the_limit_is_refused(http: httpx.Client, det: Client, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(changed())
    large = tmp_path / "context" / "large.bin"
    large.parent.mkdir()
    with large.open("wb") as file:
        file.truncate(97 * 2**20)
    ended = det.run("experiment", "create", str(path), str(large.parent))
    assert ended.code == 1
    assert "maximum allowed size" in ended.err
    # A client without that check.
    content = base64.b64encode(bytes(97 * 2**20)).decode()
    file_of_context = {"path": "large.bin", "type": 48, "content": content, "mtime": 0, "mode": 0o644}
    response = http.post("/api/v1/experiments", json={"config": changed(), "modelDefinition": [file_of_context]})
    assert response.status_code in (400, 413)
    assert error(response)[2]


@pytest.mark.parametrize("body", [b"{", b"not json", b"[1, 2", b'{"config": }', b"\xff\xfe"])
def test_a_body_that_is_not_json_is_refused(http: httpx.Client, body: bytes) -> None:
    assert error(http.post("/api/v1/experiments", content=body))[:2] == (400, 3)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/experiments", {"config": 7}),
        ("/experiments", {"config": "x", "modelDefinition": "files"}),
        ("/trials/1/progress", {"progress": "half"}),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(http: httpx.Client, path: str, body: dict[str, Any]) -> None:
    assert error(http.post(f"/api/v1{path}", json=body))[:2] == (400, 3)


ABSENT = [
    ("GET", "/experiments/999999", "experiment '999999' not found"),
    ("POST", "/experiments/999999/pause", "experiment '999999' not found"),
    ("POST", "/experiments/999999/activate", "experiment '999999' not found"),
    ("POST", "/experiments/999999/kill", "experiment '999999' not found"),
    ("DELETE", "/experiments/999999", "experiment '999999' not found"),
    ("GET", "/trials/999999", "trial '999999' not found"),
    ("GET", "/trials/999999/logs", "trial '999999' not found"),
    ("GET", "/tasks/1.nothing/logs", "task '1.nothing' not found"),
    ("GET", "/checkpoints/11111111-1111-4111-8111-111111111111", "not found"),
    ("GET", "/workspaces/999999", "workspace '999999' not found"),
    ("GET", "/projects/999999", "project '999999' not found"),
    ("POST", "/allocations/1.none.1/signals/ack_preemption", "allocation '1.none.1' not found"),
]


@pytest.mark.parametrize(("method", "path", "says"), ABSENT, ids=[f"{method} {path}" for method, path, _ in ABSENT])
def test_what_does_not_exist_is_not_found(http: httpx.Client, method: str, path: str, says: str) -> None:
    response = http.request(method, f"/api/v1{path}")
    body = response.json()["error"]
    assert response.status_code == 404
    assert says in (body.get("error") or body["message"])


def test_ids_that_are_no_numbers_and_paths_that_are_none(http: httpx.Client) -> None:
    assert error(http.get("/api/v1/experiments/seven"))[:2] == (400, 3)
    assert error(http.get("/api/v1/nothing/here"))[:2] == (501, 12)
    assert http.get("/nothing").status_code == 404


def expired_token(system: WholeSystem) -> str:
    token = system.token()
    system.rows(
        "UPDATE user_sessions SET expires_at = now() - interval '1 minute'"
        " WHERE id = (SELECT max(id) FROM user_sessions) RETURNING id"
    )
    return token


AUTHORIZATION: dict[str, Callable[[WholeSystem], str]] = {
    "wrong": lambda _: "Bearer wrong",
    "not a bearer": lambda system: system.token(),
    "expired": lambda system: f"Bearer {expired_token(system)}",
}


@pytest.mark.parametrize("which", AUTHORIZATION)
def test_a_token_that_is_not_good_is_refused(whole_system: WholeSystem, which: str) -> None:
    headers = {"Authorization": AUTHORIZATION[which](whole_system)}
    response = httpx.get(f"{whole_system.url}/api/v1/me", headers=headers, timeout=30, verify=NO_TLS)
    assert error(response) == (401, 16, "invalid credentials")


def test_without_a_token_nothing_is_shown(whole_system: WholeSystem) -> None:
    for path in ("/me", "/experiments", "/workspaces"):
        reply = httpx.get(f"{whole_system.url}/api/v1{path}", timeout=30, verify=NO_TLS)
        assert error(reply) == (401, 16, "token missing")
    assert httpx.get(f"{whole_system.url}/api/v1/master", timeout=30, verify=NO_TLS).status_code == 200


def test_the_report_of_an_earlier_run_is_refused(http: httpx.Client, finished: Finished) -> None:
    for run in (0, 2, 99):
        metrics = {
            "trialId": finished.trial,
            "trialRunId": run,
            "stepsCompleted": 4,
            "metrics": {"avgMetrics": {"loss": 0.1}},
        }
        body = {"group": "training", "metrics": metrics}
        status, _, text = error(http.post(f"/api/v1/trials/{finished.trial}/metrics", json=body))
        assert status in (400, 409)
        assert f"invalid run id, {run} (reported) != 1 (expected)" in text


def test_illegal_changes_of_state_are_refused(http: httpx.Client, finished: Finished) -> None:
    path = f"/api/v1/experiments/{finished.experiment}"
    assert error(http.post(f"{path}/pause")) == (400, 9, "experiment in terminal state")
    assert http.post(f"{path}/activate").status_code == 404
    assert http.post(f"{path}/kill").status_code == 200
    assert error(http.post(f"{path}/unarchive"))[2] == "Experiment is not archived."
