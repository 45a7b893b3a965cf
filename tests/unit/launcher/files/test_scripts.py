"""The decisions of the scripts in containers; that they run at all is shown by the integration tests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from services.launcher.files.authorize_keys import options
from services.launcher.files.check_idle import is_idle
from services.launcher.files.check_ready_logs import watch

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


def test_environment_of_ssh_sessions() -> None:
    environment = {"A": 'say "hi"', "B": "two\nlines", "_": "x", "HOME": "/", "LC_ALL": "C", "BASH_FUNC_f%%": "()"}
    assert options(environment) == 'environment="A=say \\"hi\\"",environment="B=two\\nlines"'
