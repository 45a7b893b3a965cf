"""The decisions of the scripts in containers; that they run at all is shown by the integration tests."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.launcher.files.authorize_keys import is_carried, options
from services.launcher.files.check_idle import is_idle, look
from services.launcher.files.check_ready_logs import NotWanted, watch
from services.launcher.files.trial_start import missing_writer

EMPTY: Mapping[str, Sequence[Mapping[str, Any]]] = {"kernels": [], "terminals": [], "sessions": []}
KERNEL = {"connections": 0, "execution_state": "idle", "last_activity": "2026-01-01T00:00:00Z"}
BUSY = {**KERNEL, "execution_state": "busy"}
CONNECTED = {**KERNEL, "connections": 1}


@pytest.mark.parametrize(
    ("kind", "state", "before", "idle"),
    [
        ("kernels_or_terminals", EMPTY, None, True),
        ("kernels_or_terminals", {**EMPTY, "kernels": [KERNEL]}, None, False),
        ("kernels_or_terminals", {**EMPTY, "terminals": [{"name": "1"}]}, None, False),
        ("kernels_or_terminals", {**EMPTY, "sessions": [{"id": "1"}]}, None, False),
        ("kernel_connections", {**EMPTY, "kernels": [KERNEL]}, None, True),
        ("kernel_connections", {**EMPTY, "kernels": [KERNEL, CONNECTED]}, None, False),
        ("activity", EMPTY, None, True),
        ("activity", {**EMPTY, "kernels": [KERNEL]}, None, False),
        ("activity", {**EMPTY, "kernels": [KERNEL]}, KERNEL["last_activity"], True),
        ("activity", {**EMPTY, "kernels": [BUSY]}, KERNEL["last_activity"], False),
    ],
)
def test_idleness(kind: str, state: Any, before: str | None, idle: bool) -> None:
    assert is_idle(kind, state, before)[0] is idle


def posts(lines: list[str], ready: str, waiting: str | None = None) -> list[str]:
    posted: list[str] = []
    watch(lines, re.compile(ready), re.compile(waiting) if waiting else None, posted.append)
    return posted


TENSORBOARD = ("TensorBoard contains metrics", "TensorBoard (is waiting for|waits on) metrics")


@pytest.mark.parametrize(
    ("lines", "patterns", "expected"),
    [
        (["x\n", "Server listening on 0.0.0.0 port 3200.\n"], ("Server listening on",), ["ready"]),
        (["the Server listening on\n"], ("Server listening on",), []),
        (["TensorBoard is waiting for metrics.\n"] * 3, TENSORBOARD, ["waiting"]),
        (
            ["TensorBoard is waiting for metrics.\n", "TensorBoard contains metrics\n"],
            TENSORBOARD,
            ["waiting", "ready"],
        ),
        (["INFO: [ServerApp] Jupyter Server 2.1 is running at:\n"], ("^.*Jupyter Server .* is running.*$",), ["ready"]),
    ],
)
def test_readiness(lines: list[str], patterns: tuple[str, ...], expected: list[str]) -> None:
    assert posts(lines, *patterns) == expected


@pytest.mark.parametrize("refused", ["waiting", "ready"])
def test_a_master_that_refuses_to_hear_of_waiting_still_hears_of_readiness(
    refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def post(what: str) -> None:
        asked.append(what)
        if what == refused:
            raise NotWanted(f"no {what}")

    lines = ["TensorBoard is waiting for metrics\n"] * 2 + ["TensorBoard contains metrics\n"]
    patterns = [re.compile(pattern) for pattern in TENSORBOARD]
    if refused == "ready":
        with pytest.raises(NotWanted):
            watch(lines, patterns[0], patterns[1], post)
    else:
        watch(lines, patterns[0], patterns[1], post)
        assert "no waiting" in capsys.readouterr().err
    assert asked == ["waiting", "ready"]


def test_environment_of_ssh_sessions() -> None:
    environment = {"A": 'say "hi"', "B": "two\nlines", "_": "x", "HOME": "/", "LC_ALL": "C", "BASH_FUNC_f%%": "()"}
    assert options(environment) == 'environment="A=say \\"hi\\"",environment="B=two\\nlines"'


@pytest.mark.parametrize("name", ["my.name", "my-name", "BASH_FUNC_f%%", "f()", "é"])
def test_a_name_for_which_sshd_would_refuse_the_key_is_left_out(name: str) -> None:
    assert options({name: "1", "B": "2"}) == 'environment="B=2"'


@given(st.dictionaries(st.from_regex("[A-Z][A-Z0-9_]{0,5}", fullmatch=True), st.text('ab",\\ =\n#', max_size=8)))
def test_sshd_reads_what_was_written(environment: dict[str, str]) -> None:
    expected = {name: value.replace("\n", "\\n") for name, value in environment.items() if is_carried(name, value)}
    assert as_sshd_reads(options(environment)) == expected


def as_sshd_reads(text: str) -> dict[str, str]:
    """Options as ``opt_dequote`` of OpenSSH reads them: a quote ends a value unless a backslash is before it."""
    found = {}
    while text:
        assert text.startswith('environment="')
        value, text = "", text.removeprefix('environment="')
        while not text.startswith('"'):
            text = text.removeprefix("\\") if text.startswith('\\"') else text
            value, text = value + text[0], text[1:]
        name, _, found_value = value.partition("=")
        found[name] = found_value
        text = text[1:].removeprefix(",")
    return found


class FakeJupyter(BaseHTTPRequestHandler):
    """Answers what ``check_idle`` asks, to whoever has the token."""

    status = 200
    state: ClassVar[dict[str, Any]] = {}

    def do_GET(self) -> None:
        self.send_response(self.status if self.headers["Authorization"] == "token secret" else 403)
        self.end_headers()
        self.wfile.write(json.dumps(self.state[self.path.rpartition("/")[2]]).encode())

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def jupyter() -> Iterator[str]:
    FakeJupyter.status, FakeJupyter.state = 200, dict(EMPTY)
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeJupyter)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/proxy/task"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("kind", ["kernels_or_terminals", "kernel_connections", "activity"])
def test_jupyter_is_asked_by_each_rule(jupyter: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # a proxy knows nothing of this machine
    assert look(kind, jupyter, "secret", None) == (True, None)
    FakeJupyter.state["kernels"] = [{**BUSY, "connections": 1}]
    before = KERNEL["last_activity"] if kind == "activity" else None
    assert look(kind, jupyter, "secret", None) == (False, before)


@pytest.mark.parametrize(
    ("status", "state", "token"),
    [
        (500, EMPTY, "secret"),
        (200, EMPTY, "wrong"),
        (200, {**EMPTY, "kernels": None}, "secret"),
        (200, {**EMPTY, "kernels": ["?"]}, "secret"),
    ],
    ids=["an error", "refused", "no list", "no kernels"],
)
def test_a_jupyter_that_does_not_answer_counts_as_used(jupyter: str, status: int, state: Any, token: str) -> None:
    FakeJupyter.status, FakeJupyter.state = status, dict(state)
    assert look("kernel_connections", jupyter, token, "then") == (False, "then")


def test_nobody_listens_counts_as_used() -> None:
    assert look("activity", "http://127.0.0.1:9", "secret", "then") == (False, "then")


@pytest.mark.parametrize(
    ("installed", "needs"),
    [
        ([], "torch and tensorboard (or tensorflow)"),
        (["tensorboard"], "torch and tensorboard (or tensorflow)"),
        (["torch"], "tensorboard"),
        (["torch", "tensorboard"], None),
        (["tensorflow"], None),
    ],
)
def test_packages_that_core_init_lacks_are_named(
    installed: Sequence[str], needs: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in installed:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = missing_writer()
    assert (f"does not have {needs};" in found) if needs else not found
