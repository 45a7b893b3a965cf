"""Sends what ``capture.py`` writes to the log intake, in the wire format of fluent-bit's ``http`` output.

For places without fluent-bit. Standard library of Python 3.8 only, and little of that, for one runs beside every task.
Wire format: docs/reference/logs.md 13.7 (gzip of concatenated msgpack ``[[time, {}], {"path", "offset", "log"}]``).

* A line counts as sent when the intake answered 2xx; only then the position moves, so a killed shipper repeats the last
  batch at most, and the numbers in the lines make the repetition harmless.
* Everything else is retried for ever, at most every 15 s. 413 means smaller batches; a single line refused with 400 or
  422 is garbage to the intake for good and is left out, with a note on standard error.
* While the intake cannot be reached, the file ``away`` exists in ``--state``.
* Ends with code 0 after the end of both streams was acknowledged; then the file ``shipped`` exists in ``--state``.
* Segments that are sent completely are deleted with ``--delete-shipped``: the writer waits when too many lie around.
"""

from __future__ import annotations

import errno
import fcntl
import importlib
import os
import select
import socket
import stat
import sys
import time
import zlib
from typing import NamedTuple

STREAMS = ("stdout", "stderr")
BATCH_BYTES = 512 * 1024
SMALLEST_BATCH_BYTES = 64 * 1024
GATHER_S = 0.05
IDLE_POLL_S = 5.0
FIRST_RETRY_S = 0.25
LAST_RETRY_S = 5.0
REQUEST_TIMEOUT_S = 30.0
FULL_POLL_S = 0.5
GARBAGE = (400, 422)
TOO_LARGE = 413


class Line(NamedTuple):
    """One record of a capture file, without its newline, and where it starts."""

    path: str
    offset: int
    log: bytes


class Batch(NamedTuple):
    lines: list[Line]
    positions: dict[str, ReadPosition]
    """Where each stream stands once the batch is acknowledged."""


class ReadPosition(NamedTuple):
    segment: int
    offset: int
    ended: bool


def pack(line: Line, now_ns: int) -> bytes:
    """One record as fluent-bit packs it; ``log`` is a msgpack string whose bytes are not necessarily UTF-8."""
    seconds, nanoseconds = divmod(now_ns, 10**9)
    return b"".join(
        (
            b"\x92\x92\xd7\x00",
            seconds.to_bytes(4, "big"),
            nanoseconds.to_bytes(4, "big"),
            b"\x80\x83",
            pack_string(b"path"),
            pack_string(line.path.encode()),
            pack_string(b"offset"),
            b"\xcf" + line.offset.to_bytes(8, "big"),
            pack_string(b"log"),
            pack_string(line.log),
        )
    )


def pack_string(data: bytes) -> bytes:
    size = len(data)
    if size < 32:
        return bytes((0xA0 | size,)) + data
    if size < 256:
        return bytes((0xD9, size)) + data
    return b"\xda" + size.to_bytes(2, "big") + data if size < 65536 else b"\xdb" + size.to_bytes(4, "big") + data


def gzip(data: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    return compressor.compress(data) + compressor.flush()


def is_end(record: bytes) -> bool:
    """Whether a record is the last of its stream: ``<check> <seq> <unix_ns>;eos <code>``."""
    parts = record.split(b" ", 3)
    return len(parts) == 4 and parts[1].isdigit() and parts[2].endswith(b";eos") and parts[2][:-4].isdigit()


def read_stream(directory: str, stream: str, position: ReadPosition, limit: int) -> tuple[list[Line], ReadPosition]:
    """Complete records after ``position``, about ``limit`` bytes of them, and the position after those."""
    lines: list[Line] = []
    while not position.ended and limit > 0:
        path = os.path.join(directory, f"{stream}.{position.segment}.log")
        try:
            # The next segment exists only when nothing more comes into this one, so it is looked for first.
            is_closed = os.path.exists(os.path.join(directory, f"{stream}.{position.segment + 1}.log"))
            data = read_regular(path, position.offset, limit)
        except FileNotFoundError:
            following = first_segment(directory, stream, position.segment)
            if following is None:
                break
            position = ReadPosition(following, 0, False)  # dropped by a writer that was out of space
            continue
        complete = data[: data.rfind(b"\n") + 1]
        offset = position.offset
        ended = False
        for record in complete.split(b"\n")[:-1]:
            lines.append(Line(path, offset, record))
            offset += len(record) + 1
            ended = ended or is_end(record)
        position = ReadPosition(position.segment, offset, ended)
        limit -= len(complete)
        if not complete:
            if not is_closed or len(data) == limit:
                break
            position = ReadPosition(position.segment + 1, 0, False)
    return lines, position


def read_regular(path: str, offset: int, limit: int) -> bytes:
    """At most ``limit`` bytes of a file; raises FileNotFoundError for a link and whatever else is no regular file.

    The shipper may read more than the task, which could put a link in the place of a file of its own.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FileNotFoundError(path) from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileNotFoundError(path)
        return os.pread(fd, limit, offset)
    finally:
        os.close(fd)


def open_wake(directory: str) -> int:
    """The named pipe over which the writer tells of new lines, or -1 when there is none."""
    try:
        # For reading and writing, so that the pipe never reports the end of its file.
        fd = os.open(os.path.join(directory, "wake"), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return -1
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return -1


def first_segment(directory: str, stream: str, after: int) -> int | None:
    """Lowest number of an existing segment beyond ``after``."""
    numbers = [name.split(".")[1] for name in os.listdir(directory) if name.startswith(stream + ".")]
    return min((int(number) for number in numbers if number.isdigit() and int(number) > after), default=None)


class IntakeClient:
    """The HTTP end: one connection per request, for requests are few and connections do not outlive proxies."""

    def __init__(self, url: str, headers: list[tuple[str, str]], ca_file: str, server_name: str) -> None:
        scheme, _, rest = url.partition("://")
        authority, _, base = rest.partition("/")
        host, _, port = authority.rpartition(":") if ":" in authority.rpartition("]")[2] else (authority, "", "")
        self.host = host.strip("[]")
        self.port = int(port) if port else (443 if scheme == "https" else 80)
        self.path = "/" + (base.rstrip("/") + "/" if base.strip("/") else "") + "ingest/v1/logs"
        self.authority = authority
        self.is_tls = scheme == "https"
        self.ca_file = ca_file
        self.server_name = server_name or self.host
        self.headers = headers

    def post(self, body: bytes) -> int:
        """Send one batch and return the status; raises OSError when there is no answer."""
        head = [
            f"POST {self.path} HTTP/1.1",
            f"Host: {self.authority}",
            "User-Agent: resolute-ship",
            "Connection: close",
            "Content-Type: application/msgpack",
            "Content-Encoding: gzip",
            f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        with self._connect() as connection:
            connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
            answer = b""
            while b"\r\n" not in answer:
                data = connection.recv(4096)
                if not data:
                    raise ConnectionResetError("the intake closed the connection without an answer")
                answer += data
        parts = answer.split(b" ", 2)
        if not parts[0].startswith(b"HTTP/") or len(parts) < 3 or not parts[1].isdigit():
            raise ConnectionAbortedError("the intake did not answer in HTTP")
        return int(parts[1])

    def _connect(self) -> socket.socket:
        connections = importlib.import_module("intake_connection")
        connection: socket.socket = connections.connect(
            self.host,
            self.port,
            REQUEST_TIMEOUT_S,
            tls=self.is_tls,
            ca_file=self.ca_file,
            server_name=self.server_name,
        )
        return connection


class Shipper:
    """Everything one task prints, from the files in ``directory`` to the intake."""

    def __init__(self, directory: str, state: str, intake: IntakeClient, delete_shipped: bool) -> None:
        self.directory = directory
        self.state = state
        self.intake = intake
        self.delete_shipped = delete_shipped
        self.batch_bytes = BATCH_BYTES
        self.positions = self._load()
        self.wake = open_wake(directory)

    def run(self) -> None:
        """Ship until both streams have ended."""
        while not all(position.ended for position in self.positions.values()):
            batch = self.next_batch()
            if batch.lines:
                self.deliver(batch.lines)
                self.acknowledge(batch.positions)
            elif batch.positions != self.positions:
                self.acknowledge(batch.positions)
            else:
                self.wait()
        self._write("shipped", "")

    def next_batch(self) -> Batch:
        lines: list[Line] = []
        positions = {}
        for stream in STREAMS:
            read, positions[stream] = read_stream(
                self.directory, stream, self.positions[stream], self.batch_bytes // len(STREAMS)
            )
            lines += read
        return Batch(lines, positions)

    def deliver(self, lines: list[Line]) -> None:
        """Return when the intake has every one of ``lines``, or has refused it for good."""
        parts = [lines]
        delay = FIRST_RETRY_S
        while parts:
            part = parts[0]
            now = time.time_ns()
            try:
                status = self.intake.post(gzip(b"".join(pack(line, now) for line in part)))
                problem = f"status {status}"
            except OSError as error:
                status = 0
                problem = str(error)
            self.note_whether_away(status == 0 or status >= 500)
            if 200 <= status < 300:
                parts.pop(0)
                delay = FIRST_RETRY_S
            elif status in (*GARBAGE, TOO_LARGE) and len(part) > 1:
                half = len(part) // 2
                parts[:1] = [part[:half], part[half:]]
                if status == TOO_LARGE:
                    self.batch_bytes = max(self.batch_bytes // 2, SMALLEST_BATCH_BYTES)
            elif status in GARBAGE:
                say(f"left out one line, refused with {problem}: {part[0].path} at {part[0].offset}")
                parts.pop(0)
            else:
                say(f"the intake does not take lines now, trying again in {delay:.2f} s: {problem}")
                time.sleep(delay)
                delay = min(delay * 2, LAST_RETRY_S)

    def note_whether_away(self, is_away: bool) -> None:
        """For whoever waits for the last lines: an intake that is away is waited for longer than one that is slow."""
        path = os.path.join(self.state, "away")
        if is_away:
            self._write("away", "")
        elif os.path.exists(path):
            os.unlink(path)

    def acknowledge(self, positions: dict[str, ReadPosition]) -> None:
        """Remember how far everything is sent, and delete the files that are."""
        before = self.positions
        self.positions = positions
        self._write(
            "position",
            "".join(f"{stream} {at.segment} {at.offset} {int(at.ended)}\n" for stream, at in positions.items()),
        )
        for stream, at in positions.items() if self.delete_shipped else ():
            for segment in range(before[stream].segment, at.segment):
                path = os.path.join(self.directory, f"{stream}.{segment}.log")
                if os.path.exists(path):
                    os.unlink(path)

    def wait(self) -> None:
        """Sleep until the writer says there is more; look anyway now and then, for a writer that was killed."""
        if self.wake < 0:
            time.sleep(1.0)
            return
        ready, _, _ = select.select([self.wake], [], [], IDLE_POLL_S)
        if ready:
            # What is printed together travels together.
            time.sleep(GATHER_S)
            os.read(self.wake, 65536)

    def _load(self) -> dict[str, ReadPosition]:
        positions = dict.fromkeys(STREAMS, ReadPosition(0, 0, False))
        try:
            with open(os.path.join(self.state, "position")) as file:
                for line in file:
                    stream, segment, offset, ended = line.split()
                    positions[stream] = ReadPosition(int(segment), int(offset), ended == "1")
        except FileNotFoundError:
            pass  # nothing is sent yet
        return positions

    def _write(self, name: str, text: str) -> None:
        path = os.path.join(self.state, name)
        fd = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        write_when_possible(fd, text.encode())
        os.close(fd)
        os.replace(path + ".new", path)


def write_when_possible(fd: int, content: bytes) -> None:
    """Make ``content`` all that a small file says; waits while the disk is full."""
    while True:
        try:
            if os.pwrite(fd, content, 0) == len(content):
                os.ftruncate(fd, len(content))
                return
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
        time.sleep(FULL_POLL_S)


def say(text: str) -> None:
    """Write a line for whoever looks for the cause of a trouble; on a full disk it is lost, and delivery goes on."""
    try:
        os.write(2, f"ship: {text}\n".encode())
    except OSError:
        return


def lock(state: str) -> bool:
    """Make this the only shipper of the task, for as long as it lives; the file names its pid."""
    fd = os.open(os.path.join(state, "ship.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    write_when_possible(fd, b"%d\n" % os.getpid())
    return True


def main(args: list[str]) -> int:
    flags = dict.fromkeys(
        ("url", "dir", "state", "token-file", "allocation", "pod", "node", "restart", "ca-file", "server-name"), ""
    )
    delete_shipped = False
    while args:
        name = args.pop(0)[2:]
        if name == "delete-shipped":
            delete_shipped = True
        elif name in flags and args:
            flags[name] = args.pop(0)
        else:
            sys.exit(f"ship: cannot use --{name}")
    if not lock(flags["state"]):
        return 0
    with open(flags["token-file"]) as file:
        token = file.read().strip()
    headers = [
        ("Authorization", f"Bearer {token}"),
        ("X-Det-Allocation", flags["allocation"]),
        ("X-Det-Pod", flags["pod"]),
        ("X-Det-Node", flags["node"]),
        ("X-Det-Restart", flags["restart"] or "0"),
    ]
    # Behind the standard library: a task may put files of its own beside those that were put there for it.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    intake = IntakeClient(flags["url"], headers, flags["ca-file"], flags["server-name"])
    Shipper(flags["dir"], flags["state"], intake, delete_shipped).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
