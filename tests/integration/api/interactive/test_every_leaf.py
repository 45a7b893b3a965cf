"""Commands of ``det notebook | tensorboard | shell | command`` with a task that nobody has, without a login that
counts, and in every format; and what a kind makes of the tasks of others (docs/reference/tasks-and-cli.md 2.7).
"""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path

import httpx
import pytest

from tests.harness.api import ApiProcess
from tests.harness.det import Det, Ended
from tests.integration.api.interactive.conftest import Task

KINDS = {"NOTEBOOK": "notebook", "TENSORBOARD": "tensorboard", "SHELL": "shell", "COMMAND": "command"}
NOBODY = "00000000-0000-4000-8000-000000000000"
OF_ALL = ("config", "logs", "kill", "set priority")
LEAVES = [
    *((noun, leaf) for noun in KINDS.values() for leaf in OF_ALL),
    ("command", "describe"),
    ("notebook", "open"),
    ("tensorboard", "open"),
    ("shell", "open"),
    ("shell", "show-ssh-command"),
]
named = pytest.mark.parametrize(("noun", "leaf"), LEAVES, ids=[f"{noun} {leaf}" for noun, leaf in LEAVES])
every_kind = pytest.mark.parametrize("task_type", KINDS)


@pytest.fixture(scope="module")
def somebody(api: ApiProcess, tmp_path_factory: pytest.TempPathFactory) -> Det:
    """The owner of these tasks: ``determined``."""
    return Det(url=api.url, home=tmp_path_factory.mktemp("somebody"))


@pytest.fixture(scope="module")
def stranger(api: ApiProcess, tmp_path_factory: pytest.TempPathFactory) -> Det:
    """Somebody with a password that is none."""
    login = {"DET_USER": "determined", "DET_PASS": "wrong"}
    return Det(url=api.url, home=tmp_path_factory.mktemp("stranger"), env=login)


def said(ended: Ended) -> str:
    assert "Traceback" not in ended.err, str(ended)
    return f"{ended.out}{ended.err}"


def words(noun: str, leaf: str, ident: str) -> list[str]:
    return [noun, *leaf.split(), ident, *(["7"] if leaf == "set priority" else [])]


@named
def test_a_task_that_nobody_has(somebody: Det, noun: str, leaf: str) -> None:
    ended = somebody.run(*words(noun, leaf, NOBODY))
    assert f"'{NOBODY}' not found" in said(ended)
    # The client says that it skips a priority, and calls that a success.
    assert ended.code == (0 if leaf == "set priority" else 1)


@named
def test_without_a_login_that_counts(stranger: Det, noun: str, leaf: str) -> None:
    assert "Unauthenticated: Please use" in said(stranger.fails(*words(noun, leaf, NOBODY)))


@every_kind
def test_a_list_in_every_format(somebody: Det, task: Task, task_type: str) -> None:
    noun = KINDS[task_type]
    ident = task(task_type, description="the one", experiment_ids=[1])
    assert ident in somebody(noun, "list").out
    assert ident in somebody(noun, "list", "--quiet").out.splitlines()
    assert ident in [row["id"] for row in somebody(noun, "list", "--json").json()]
    assert ident in [row["id"] for row in csv.DictReader(io.StringIO(somebody(noun, "list", "--csv").out))]


@every_kind
def test_a_task_is_none_of_another_kind(user: httpx.Client, task: Task, task_type: str) -> None:
    ident = task(task_type, experiment_ids=[1])
    for noun in set(KINDS.values()) - {KINDS[task_type]}:
        for method, rest in (("GET", ""), ("POST", "/kill"), ("POST", "/set_priority")):
            body = {"priority": 5} if rest == "/set_priority" else None
            refused = user.request(method, f"/api/v1/{noun}s/{ident}{rest}", json=body)
            assert (refused.status_code, refused.json()["error"]["error"]) == (404, f"{noun} '{ident}' not found")
    assert user.get(f"/api/v1/{KINDS[task_type]}s/{ident}").status_code == 200


@pytest.mark.parametrize("noun", ["notebook", "shell", "command"])
def test_a_context_beyond_the_limit_is_refused(user: httpx.Client, noun: str) -> None:
    """Of a client that does not look at it itself."""
    content = base64.b64encode(bytes(97 << 20)).decode()
    files = [{"path": "large", "type": 48, "content": content, "mtime": 0, "mode": 0o644}]
    before = len(user.get(f"/api/v1/{noun}s").json()[f"{noun}s"])
    refused = user.post(f"/api/v1/{noun}s", json={"config": {}, "files": files}, timeout=120)
    assert refused.status_code in (400, 413), refused.text
    assert refused.json()["error"]["error"]
    assert len(user.get(f"/api/v1/{noun}s").json()[f"{noun}s"]) == before


@pytest.mark.parametrize("noun", ["notebook", "shell", "command"])
def test_a_template_shows_in_the_configuration(somebody: Det, det: Det, tmp_path: Path, noun: str) -> None:
    template = tmp_path / "template.yaml"
    template.write_text("environment: {environment_variables: [SHOULDBE=SET]}\n")
    det("template", "set", "of-every-kind", str(template))
    assert "SHOULDBE=SET" in det("template", "describe", "of-every-kind").out
    verb = ("run", "true") if noun == "command" else ("start",)
    options = ("-d", "--template", "of-every-kind", "--config", "resources.slots=0")
    known = set(somebody(noun, "list", "-q").out.splitlines())
    somebody(noun, verb[0], *options, *verb[1:])
    [ident] = set(somebody(noun, "list", "-q").out.splitlines()) - known
    assert "SHOULDBE=SET" in somebody(noun, "config", ident).out
