"""``resolute up`` starts nothing on a port that somebody else holds, and says who does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from deploy.local import system
from deploy.local.failure import PortHeld
from deploy.local.layout import Layout
from deploy.local.supervision import processes
from tests.harness.resolute import NOT_RUNNING, Resolute
from tests.harness.whole_system import WholeSystem, state_folder


@pytest.fixture
def second() -> Iterator[Resolute]:
    with state_folder() as state:
        yield Resolute(state)


def test_up_does_not_take_the_system_of_another_folder_for_its_own(whole_system: WholeSystem, second: Resolute) -> None:
    said = second("up", "--port", str(whole_system.options.api_port), "--passwords", "blank", code=1)
    assert f"port {whole_system.options.api_port}, where the api is to listen" in said
    assert f"is held by the Resolute of {whole_system.layout.root} (pid " in said
    assert f"resolute --state {whole_system.layout.root} down" in said
    assert "Traceback" not in said
    nothing_is_left_of(second)


def test_up_names_the_program_that_has_the_port(second: Resolute) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        said = second("up", "--port", str(port), "--passwords", "blank", code=1)
        assert f"port {port}, where the api is to listen, is held by " in said
        assert f"(pid {os.getpid()}): take another with `resolute up --port 0`, or end that program" in said
        nothing_is_left_of(second)


def test_an_api_that_answers_for_another_installation_is_not_taken_for_ours(whole_system: WholeSystem) -> None:
    with other_api() as port, pytest.raises(PortHeld, match=f"port {port}, where the api is to listen, is held by"):
        system.wait_until_ready(whole_system.layout, replace(whole_system.options, api_port=port), set())


@contextmanager
def other_api() -> Iterator[int]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"cluster_id": "of-another"}')

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def nothing_is_left_of(resolute: Resolute) -> None:
    assert "nothing was ever started" in resolute("status", code=NOT_RUNNING)
    assert processes.find(Layout(resolute.state), processes.SUPERVISOR) is None
