"""What goes through the proxy, against the same to the same server without it: transfers, small requests, memory.

The server is a process of its own, and the client here does as little as it can, so that the proxy is measured. Small
requests go to aiohttp, a server like those that people have in tasks; what only writes prepared bytes would measure
nothing that exists.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.events.observations import ObservedPod
from libs.events.orders import ProxyPort
from libs.ids import new_uuid
from libs.tasks.stored import StoredTask, to_document
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.builders import insert_interactive

GIB: Final = 2**30
PIECE: Final = bytes(256 * 1024)
ROUNDS: Final = 2
REQUESTS_S: Final = 2.0
CONNECTIONS: Final = 8
ALONE: Final = 500
WEBSOCKETS: Final = 200
_FRAME: Final = b"\x82\xff" + len(PIECE).to_bytes(8, "big") + bytes(4) + PIECE
"""Masked with zeros, which costs the client nothing and the proxy as much as any mask."""
_SHAKE: Final = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


async def measure(system: BenchSystem) -> list[Result]:
    pid = system.pids()["api"]
    with _server() as (http_port, web_port, tcp_port):
        web = await _insert_service(system, web_port, proxy_tcp=False)
        http = await _insert_service(system, http_port, proxy_tcp=False)
        tcp = await _insert_service(system, tcp_port, proxy_tcp=True)
        master = urlsplit(system.options.master_url)
        api = (master.hostname or "127.0.0.1", master.port or 80)
        ports = {http: http_port, web: web_port, tcp: tcp_port}
        ways = _Ways(api, ports, http=http, web=web, tcp=tcp, token=system.log_in())
        return await asyncio.to_thread(_measure, ways, pid)


def _path(task: str, name: str) -> bytes:
    return f"/proxy/{task}/{name}".encode()


class _Ways:
    """How to reach the server: directly, and through the proxy."""

    def __init__(
        self, api: tuple[str, int], ports: dict[str, int], *, http: str, web: str, tcp: str, token: str
    ) -> None:
        self._api, self._ports = api, ports
        self.http_task, self.web_task, self._tcp_task = http, web, tcp
        self._token = token.encode()

    def http(self, task: str, *, proxied: bool) -> tuple[socket.socket, bytes]:
        """A connection, and the rest of a head for requests to the server behind it."""
        head = b"Host: bench\r\nAuthorization: Bearer " + self._token + b"\r\n"
        return _connect(self._api if proxied else ("127.0.0.1", self._ports[task])), head

    def tcp(self, *, proxied: bool) -> socket.socket:
        return self.websocket() if proxied else _connect(("127.0.0.1", self._ports[self._tcp_task]))

    def websocket(self) -> socket.socket:
        connection = _connect(self._api)
        head = b"GET /proxy/%b/ HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %b\r\n%b\r\n"
        connection.sendall(head % (self._tcp_task.encode(), self._token, _SHAKE))
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += connection.recv(1)
        assert answer.startswith(b"HTTP/1.1 101 "), answer
        return connection


def _measure(ways: _Ways, pid: int) -> list[Result]:
    _download(ways, proxied=True, size=2**26)  # what is loaded and opened once is there
    _reset_peak(pid)
    before = _memory_kib(pid, "VmRSS")
    results = []
    for name, transfer, goal in (
        ("HTTP download of 1 GiB through the proxy", _download, 0.4),
        ("HTTP upload of 1 GiB through the proxy", _upload, 0.4),
        ("TCP download of 1 GiB over websocket", _tcp_download, 0.3),
        ("TCP upload of 1 GiB over websocket", _tcp_upload, 0.3),
    ):
        results.append(_rate(name, transfer, ways, goal))
    grown = _memory_kib(pid, "VmHWM") - before
    # As a share of what is allowed, since nothing was there before.
    results.append(_result("memory of the api during all transfers", grown / 1024, "MiB", 50.0, 1.0, better="lower"))
    direct, proxied = (max(_requests_per_s(ways, proxied=way) for _ in range(ROUNDS)) for way in (False, True))
    results.append(_result("small GETs per second through the proxy", proxied, "requests/s", direct, 0.25))
    alone, with_proxy = (_median_s(ways, proxied=way) * 1e3 for way in (False, True))
    results.append(_result("latency that the proxy adds", with_proxy - alone, "ms", 3.0, 1.0, better="lower"))
    results.append(_idle_websockets(ways, pid))
    return results


def _result(name: str, value: float, unit: str, baseline: float, goal: float | None, better: str = "higher") -> Result:
    is_higher = better == "higher"
    return Result(
        name=name, value=value, unit=unit, baseline=baseline, goal=goal, better="higher" if is_higher else "lower"
    )


def _rate(name: str, transfer: Callable[..., float], ways: _Ways, goal: float) -> Result:
    """Alternating, so that what else the machine does hits both."""
    direct, proxied = [], []
    for _ in range(ROUNDS):
        direct.append(transfer(ways, proxied=False, size=GIB))
        proxied.append(transfer(ways, proxied=True, size=GIB))
    rates = (GIB / 2**20 / min(seconds) for seconds in (proxied, direct))
    value, baseline = rates
    return _result(name, value, "MiB/s", baseline, goal)


def _download(ways: _Ways, *, proxied: bool, size: int) -> float:
    connection, head = ways.http(ways.http_task, proxied=proxied)
    with connection:
        began = time.perf_counter()
        connection.sendall(b"GET %b HTTP/1.1\r\n%b\r\n" % (_path(ways.http_task, f"many/{size}"), head))
        _receive(connection, size)
        return time.perf_counter() - began


def _upload(ways: _Ways, *, proxied: bool, size: int) -> float:
    connection, head = ways.http(ways.http_task, proxied=proxied)
    with connection:
        began = time.perf_counter()
        connection.sendall(
            b"PUT %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n" % (_path(ways.http_task, "take"), head, size)
        )
        for _ in range(size // len(PIECE)):
            connection.sendall(PIECE)
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        return time.perf_counter() - began


def _tcp_download(ways: _Ways, *, proxied: bool, size: int) -> float:
    with ways.tcp(proxied=proxied) as connection:
        began = time.perf_counter()
        _send_message(connection, b"D%15d" % size, proxied=proxied)
        _receive(connection, size)
        return time.perf_counter() - began


def _tcp_upload(ways: _Ways, *, proxied: bool, size: int) -> float:
    with ways.tcp(proxied=proxied) as connection:
        began = time.perf_counter()
        _send_message(connection, b"U%15d" % size, proxied=proxied)
        piece = _FRAME if proxied else PIECE
        for _ in range(size // len(PIECE)):
            connection.sendall(piece)
        _receive(connection, 1)
        return time.perf_counter() - began


def _send_message(connection: socket.socket, message: bytes, *, proxied: bool) -> None:
    connection.sendall(b"\x82" + bytes([0x80 | len(message)]) + bytes(4) + message if proxied else message)


def _receive(connection: socket.socket, size: int) -> None:
    """As many bytes, or the few more that a head or frames are."""
    buffer = bytearray(len(PIECE))
    while size > 0:
        got = connection.recv_into(buffer)
        assert got, "the connection was cut"
        size -= got


def _requests_per_s(ways: _Ways, *, proxied: bool) -> float:
    """Over several connections at once."""
    connections = [ways.http(ways.web_task, proxied=proxied) for _ in range(CONNECTIONS)]
    request = b"GET %b HTTP/1.1\r\n%b\r\n" % (_path(ways.web_task, "small"), connections[0][1])
    sockets = [connection for connection, _ in connections]
    count, began = 0, time.perf_counter()
    while (now := time.perf_counter()) - began < REQUESTS_S:
        for connection in sockets:
            connection.sendall(request)
        for connection in sockets:
            _read_small(connection)
        count += len(sockets)
    for connection in sockets:
        connection.close()
    return count / (now - began)


def _median_s(ways: _Ways, *, proxied: bool) -> float:
    connection, head = ways.http(ways.web_task, proxied=proxied)
    request = b"GET %b HTTP/1.1\r\n%b\r\n" % (_path(ways.web_task, "small"), head)
    taken = []
    with connection:
        for _ in range(ALONE):
            began = time.perf_counter()
            connection.sendall(request)
            _read_small(connection)
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _read_small(connection: socket.socket) -> None:
    answer = connection.recv(65536)
    while not answer.endswith(b"hello"):
        got = connection.recv(65536)
        assert got, answer
        answer += got


def _idle_websockets(ways: _Ways, pid: int) -> Result:
    """Of those after the first many, which get what the transfers have used before."""
    first = [ways.websocket() for _ in range(WEBSOCKETS)]
    before = _memory_kib(pid, "VmRSS")
    further = [ways.websocket() for _ in range(WEBSOCKETS)]
    grown = _memory_kib(pid, "VmRSS") - before
    for connection in (*first, *further):
        connection.close()
    return _result("memory of an idle websocket", grown / WEBSOCKETS, "KiB", 1.0, None, better="lower")


def _connect(address: tuple[str, int]) -> socket.socket:
    connection = socket.create_connection(address)
    connection.settimeout(60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _reset_peak(pid: int) -> None:
    with contextlib.suppress(PermissionError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _memory_kib(pid: int, what: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:"))


async def _insert_service(system: BenchSystem, port: int, *, proxy_tcp: bool) -> str:
    task_id = new_uuid()
    ports = (ProxyPort(service_id=task_id, port=port, proxy_tcp=proxy_tcp),)
    spec = to_document(StoredTask(description="bench", proxy_ports=ports))
    pods = msgspec.to_builtins([ObservedPod(name="pod", state="RUNNING", addresses=("127.0.0.1",))])
    allocation = {"state": "RUNNING", "proxy_address": "127.0.0.1", "pods": pods, "pool": "bench"}
    url = system.database_url.replace("postgresql://", "postgresql+asyncpg://")
    async with connect_database(DatabaseSettings(url=url, pool_size=1)) as db, db.transaction() as connection:
        await insert_interactive(
            connection,
            task_type="NOTEBOOK",
            job={"pool": "bench"},
            task={"task_id": task_id, "spec": spec},
            allocation=allocation,
        )
    return task_id


@contextlib.contextmanager
def _server() -> Iterator[tuple[int, int, int]]:
    """The server of this benchmark as a process; its ports for HTTP, aiohttp and TCP."""
    command = [sys.executable, "-m", "tests.bench.proxying.server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            http, web, tcp = map(int, process.stdout.readline().split())
            yield http, web, tcp
        finally:
            process.kill()
