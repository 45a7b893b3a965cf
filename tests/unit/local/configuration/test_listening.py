"""Who holds the ports of a system that runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.configuration import listening
from deploy.local.failure import PortHeld
from deploy.local.layout import Layout, Options

OPTIONS = Options(
    api_port=1, nats_port=2, postgres_port=3, postgres_data="", postgres_password="", logs_port=4, python="", slots=1
)


@pytest.fixture
def held_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The only port of the system is one that this process listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = listening.ListeningPlace("the launcher", "127.0.0.1", server.getsockname()[1])
        monkeypatch.setattr(listening, "_places", lambda *_: [place])
        yield


@pytest.mark.usefixtures("held_here")
def test_a_process_that_was_started_again_while_ports_are_looked_at_is_one_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looks = iter([set[int](), {os.getpid()}])
    monkeypatch.setattr(listening, "own_pids", lambda _: next(looks))
    listening.expect_own_ports(Layout(tmp_path), OPTIONS)
    assert next(looks, None) is None


@pytest.mark.usefixtures("held_here")
def test_others_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(listening, "own_pids", lambda _: set())
    with pytest.raises(PortHeld, match=f"pid {os.getpid()}"):
        listening.expect_own_ports(Layout(tmp_path), OPTIONS)
