"""Ports of trials: a tunnel of ``det experiment create -p``, and addresses below ``/proxy/``."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from deploy.local import system as local_system
from deploy.local.layout import Layout
from deploy.local.servers.ports import free_port
from tests.e2e.interactive.users import User
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, arguments, state_folder
from tests.programs import create_arguments, submit, yaml_text

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def system() -> Iterator[WholeSystem]:
    """Not the shared one: here two slots are a task of two pods."""
    with state_folder() as state:
        layout = Layout(state)
        config = state.parent / "cluster.yaml"
        config.write_text(
            yaml_text(
                {
                    "resource_manager": {"type": "process", "slot_type": "cpu", "max_slots_per_pod": 1},
                    "resource_pools": [{"pool_name": "default"}],
                    "checkpoint_storage": {"type": "shared_fs", "host_path": str(layout.checkpoints)},
                }
            )
        )
        options = local_system.start(layout, arguments(slots=2, config=str(config)))
        yield WholeSystem(layout, options, state.parent / "homes")


@pytest.fixture(scope="module")
def user(system: WholeSystem) -> Iterator[User]:
    with system.http() as http:
        yield User(system, http)


def served(http: list[int], tcp: list[int]) -> dict[str, Any]:
    """Configuration of trials that serve; on one machine they need ports of their own."""
    ports = [*({"proxy_port": port} for port in http), *({"proxy_port": port, "proxy_tcp": True} for port in tcp)]
    return {"data": {"http": http, "tcp": tcp}, "environment": {"proxy_ports": ports}}


def page_of(user: User, service: str) -> dict[str, Any]:
    """What the HTTP server of a trial says; {} while it does not."""
    answer = user.http.get(f"/proxy/{service}/page")
    assert answer.status_code in (200, 404, 502), answer.text
    found: dict[str, Any] = answer.json() if answer.status_code == 200 else {}
    return found


def echoed(port: int, sent: bytes) -> bytes:
    """What comes back from a server on this machine, as far as something does."""
    got = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(sent)
            while len(got) < len(sent) and (data := connection.recv(65536)):
                got += data
    except ConnectionError:
        pass  # nobody listens yet, or the tunnel found nobody
    return got


@contextmanager
def tunnel_of_a_new_experiment(user: User, *arguments: str) -> Iterator[None]:
    """``det experiment create -f -p ...``, which lives as long as the first trial: the block has to end that."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(user.det, *arguments)
        yield
        assert "Created experiment" in following.result()


def test_ports_of_two_trials_at_once(user: User) -> None:
    http, tcp = [free_port(), free_port()], [free_port(), free_port()]
    local = free_port()
    arguments = create_arguments(
        user.det,
        "serving.py",
        *("-f", "-p", f"{local}:{tcp[0]}"),
        searcher={"name": "grid", "metric": "loss", "max_concurrent_trials": 2},
        hyperparameters={"place": {"type": "categorical", "vals": [0, 1]}},
        resources={"slots_per_trial": 0},
        **served(http, tcp),
    )
    look = Looking(user.http)
    newest = {"limit": 1, "sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_DESC"}
    before = [found["id"] for found in look.get("/experiments", **newest)["experiments"]]

    def created() -> list[int]:
        return [found["id"] for found in look.get("/experiments", **newest)["experiments"] if found["id"] not in before]

    with tunnel_of_a_new_experiment(user, *arguments):
        [experiment] = wait_until(created)
        trials = wait_until(lambda: found if len(found := look.trials(experiment)) == 2 else [])
        tasks = [trial["taskId"] for trial in trials]
        places = [trial["hparams"]["place"] for trial in trials]
        assert sorted(places) == [0, 1]
        for trial, task, place in zip(trials, tasks, places, strict=True):
            page = wait_until(lambda task=task, place=place: page_of(user, f"{task}:{http[place]}"), what="it serves")
            assert page == {"trial": trial["id"], "rank": 0, "path": f"/proxy/{task}:{http[place]}/page"}
        # The tunnel leads to the first trial, and lets several connections through at once.
        sent = [os.urandom(300_000) for _ in range(3)]
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(lambda data: echoed(local, data), sent)) == sent
        assert user.http.get(f"/proxy/{tasks[0]}:{tcp[0]}/").status_code == 400  # TCP needs a websocket
        assert user.http.get(f"/proxy/{tasks[0]}:{local}/").status_code == 404
        for task, place in zip(tasks, places, strict=True):
            assert user.http.get(f"/proxy/{task}:{http[place]}/finish").status_code == 200
    look.wait(experiment)
    assert [user.http.get(f"/proxy/{task}:{http[0]}/").status_code for task in tasks] == [404, 404]


def test_of_several_pods_the_first_is_reached(user: User) -> None:
    http, tcp = free_port(), free_port()
    experiment = submit(
        user.det,
        "serving.py",
        hyperparameters={"place": 0},
        resources={"slots_per_trial": 2},
        **served([http], [tcp]),
    )
    look = Looking(user.http)
    [trial] = wait_until(lambda: look.trials(experiment))
    service = f"{trial['taskId']}:{http}"
    assert wait_until(lambda: page_of(user, service))["rank"] == 0
    user.http.get(f"/proxy/{service}/finish").raise_for_status()
    look.wait(experiment)
