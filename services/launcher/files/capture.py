"""Runs a task and writes every line it prints, with its number and time, to files from which a shipper sends them.

Put into every task container and run with whatever Python is there, so it uses the standard library of Python 3.8 only
and little of that: it stays in memory for as long as the task runs. The grammar of the files is in
``libs/capture/lines.py``; the rules are those of docs/reference/logs.md 2.3, 2.5 and 13.2:

* the task gets pipes, never files: ``wrap_rank`` reopens its standard output by name;
* a line ends at a line feed, a carriage return or both, or is cut after 8191 bytes, not inside a UTF-8 character;
* files are only ever appended to; a new one begins at ``--segment-bytes``;
* when ``--cap-bytes`` (8 MiB at least) lie in the directory, the pipes are left unread and the task waits: for a
  shipper that deletes what it has sent (``--when-full block``), or until the log intake has every line of a file, which
  may go then (``stored``). Only where nobody reads the files the oldest go (``drop``);
* while fluent-bit does not get rid of what it has read, new segments are written under a name that it does not read
  (``.held``) and renamed later: its copy of a line takes a file of 4 KiB, ours as many bytes as the line;
* what ended a task of Python that lacks a module, its last line, is told as the reason of its end;
* exit code of the task, 128+n after signal n, 127 command not found, 126 not executable;
* output of processes that outlive the task is read until they print nothing for a second, and for ``DET_LOG_WAIT_TIME``
  at most; for one second in all when the task was asked to end.
"""

from __future__ import annotations

import binascii
import errno
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Sequence

MAX_PAYLOAD = 8191
READ_BYTES = 65536
CARRIAGE_RETURN = b"\r"
TAIL_BYTES = 4 * MAX_PAYLOAD
ORPHAN_WAIT_S = 1.0
"""How long processes that outlive the task may be silent before nobody listens any more."""
FULL_POLL_S = 0.5
COUNTS = 16
"""How often the directory is counted while as much is written as may lie there."""
COUNT_AGAIN_S = 10.0
"""After which time it is counted however little was written: others write there too."""
CHUNKS = ".flb"
"""Where fluent-bit keeps what it has read: a file for each chunk, in a directory for each of its inputs."""
HOLD_AT = 32
"""Chunks from which on output is held back; fewer than fluent-bit keeps open (``storage.max_chunks_up``)."""
RELEASE_AT = 8
LOOK_S = 0.25
RELEASE_PAUSE_S = 2.0
"""Between two segments that are released: the time in which fluent-bit finds the first and makes chunks of it."""
DEFAULT_LOG_WAIT_S = 30.0
TERMINATION_LOG = "/dev/termination-log"
"""What Kubernetes reads when a container has ended, and makes before it starts."""
MISSING_MODULE = b"ModuleNotFoundError: "
"""How the last line of a program begins that ended because the Python of the task lacks a package."""
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
WAITS_FOR_SPACE = stat.S_IXUSR
LOST = b"WARNING: %s broke off here: the disk was full when the task was killed, and what it printed last is lost"
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
STREAMS = ("stdout", "stderr")


def split_lines(pending: bytes, data: bytes) -> tuple[list[bytes], bytes]:
    """Complete lines of ``pending + data``, each at most 8191 bytes, and the unfinished rest.

    A carriage return at the end completes its line and is the rest, since a line feed behind it belongs to it.
    """
    text = pending + data
    if pending == CARRIAGE_RETURN:
        text = data[1:] if data.startswith(b"\n") else data
    pieces = text.replace(b"\r\n", b"\n").replace(CARRIAGE_RETURN, b"\n").split(b"\n")
    rest = pieces.pop()
    lines: list[bytes] = []
    for piece in pieces:
        cut, last = cut_line(piece)
        lines += cut
        lines.append(last)
    cut, rest = cut_line(rest)
    if text.endswith(CARRIAGE_RETURN) or (not data and pending == CARRIAGE_RETURN):
        rest = CARRIAGE_RETURN
    return lines + cut, rest


def cut_line(piece: bytes) -> tuple[list[bytes], bytes]:
    """Full-length parts of a line that is too long, and what is left of it."""
    parts = []
    start = 0
    while len(piece) - start > MAX_PAYLOAD:
        at = cut_position(piece, start)
        parts.append(piece[start:at])
        start = at
    return parts, piece[start:] if start else piece


def cut_position(piece: bytes, start: int) -> int:
    """Where to cut: after 8191 bytes, or up to three earlier to keep a UTF-8 character whole."""
    end = start + MAX_PAYLOAD
    for at in range(end, end - 4, -1):
        if piece[at] & 0xC0 != 0x80:
            return at
    return end  # four continuation bytes in a row are no UTF-8


def text_record(seq: int, payload: bytes) -> bytes:
    return checked(b"%d %d %s" % (seq, time.time_ns(), payload))


def end_record(seq: int, exit_code: int | None) -> bytes:
    return checked(b"%d %d;eos %s" % (seq, time.time_ns(), b"-" if exit_code is None else b"%d" % exit_code))


def checked(rest: bytes) -> bytes:
    """A record with its check, by which a piece of it can be told from the whole."""
    return b"%08x %s\n" % (binascii.crc32(rest), rest)


class StreamFile:
    """The segment files of one stream."""

    def __init__(self, directory: str, name: str, segment_bytes: int, echo_fd: int | None) -> None:
        self.directory = directory
        self.name = name
        self.segment_bytes = segment_bytes
        self.echo_fd = echo_fd
        self.segment = 0
        self.seq = 0
        self.size = 0
        self.pending = b""
        self.last = b""
        """The last line that is not empty."""
        self.finished: list[tuple[int, int]] = []
        """Segments that are complete, with the number that follows their last line."""
        self.holds = False
        """Whether new segments are held back."""
        self.held: list[int] = []
        """Segments that are."""
        self.fd = self._open()

    def path(self, segment: int) -> str:
        ending = "held" if segment in self.held else "log"
        return os.path.join(self.directory, f"{self.name}.{segment}.{ending}")

    def take(self, data: bytes) -> int:
        """Write the lines that ``data`` completes; returns how many bytes that made."""
        lines, self.pending = split_lines(self.pending, data)
        return self.write(lines)

    def write(self, payloads: list[bytes]) -> int:
        self._turn()
        records = []
        for payload in payloads:
            records.append(text_record(self.seq, payload))
            self.seq += 1
            self.last = payload or self.last
        data = b"".join(records)
        self._append(data)
        if self.echo_fd is not None and payloads:
            os.write(self.echo_fd, b"\n".join(payloads) + b"\n")
        return len(data)

    def finish(self, exit_code: int | None) -> None:
        """Write what is unfinished, and the end of the stream."""
        if self.pending not in (b"", CARRIAGE_RETURN):
            self.write([self.pending])
        self._turn()
        self._append(end_record(self.seq, exit_code))
        os.fsync(self.fd)

    def delete_below(self, seq: int) -> None:
        """Delete the finished segments of which all numbers are below ``seq``."""
        while self.finished and self.finished[0][1] <= seq and self.finished[0][0] not in self.held:
            segment, _ = self.finished.pop(0)
            unlink(self.path(segment))

    def release(self) -> None:
        """Let the first segment that is held back be read; it may be the one that is being written."""
        if self.held:
            held = self.path(self.held[0])
            segment = self.held.pop(0)
            os.rename(held, self.path(segment))
        self.holds = bool(self.held)

    def _open(self, before: int | None = None) -> int:
        """``before`` is the file of the segment that has ended."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        while True:
            try:
                return os.open(self.path(self.segment), flags, 0o644)
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
                if before is not None:
                    mark_waiting(before, True)
                time.sleep(FULL_POLL_S)

    def _turn(self) -> None:
        """Begin the next segment when this one is full, or is read although nothing more should be."""
        if self.size >= self.segment_bytes or (self.holds and self.segment not in self.held):
            self.finished.append((self.segment, self.seq))
            self.segment += 1
            self.size = 0
            if self.holds:
                self.held.append(self.segment)
            before = self.fd
            self.fd = self._open(before)
            os.close(before)

    def _append(self, data: bytes) -> None:
        self.size += len(data)
        waits = False
        while data:
            try:
                data = data[os.write(self.fd, data) :]
            except OSError as error:
                # A full disk is back-pressure like any other: the task waits until there is room again.
                if error.errno not in NO_SPACE:
                    raise
                if not waits:
                    waits = True
                    mark_waiting(self.fd, waits)
                time.sleep(FULL_POLL_S)
        if waits:
            mark_waiting(self.fd, False)


def mark_waiting(fd: int, waits: bool) -> None:
    """Note at a file whether there are lines for it in memory that the disk has no space for. A bit of its mode takes
    none, and tells ``seal`` of them when the writer was killed meanwhile."""
    mode = stat.S_IMODE(os.fstat(fd).st_mode)
    os.fchmod(fd, mode | WAITS_FOR_SPACE if waits else mode & ~WAITS_FOR_SPACE)


class CaptureQuota:
    """How much lies in the directory, a shipper's own files included, and whether that is too much."""

    def __init__(self, directory: str, cap_bytes: int, make_room: Callable[[int], None]) -> None:
        """``make_room`` is told how many bytes are too many, and deletes what it may."""
        self.directory = directory
        self.cap_bytes = cap_bytes
        self.make_room = make_room
        self.written = 0
        self.counted_at = time.monotonic()
        self.full = False

    def is_full(self, added: int) -> bool:
        """Count ``added`` bytes; True when the pipes should be left unread for now."""
        self.written += added
        is_long_ago = time.monotonic() >= self.counted_at + COUNT_AGAIN_S
        if self.full or is_long_ago or self.written >= self.cap_bytes // COUNTS:
            self.written = 0
            self.counted_at = time.monotonic()
            excess = size_of(self.directory) - self.cap_bytes
            if excess > 0:
                self.make_room(excess)
                excess = size_of(self.directory) - self.cap_bytes
            self.full = excess > 0
        return self.full


def size_of(directory: str) -> int:
    """Bytes that files take on the disk, which is what Kubernetes compares with the limit of a volume."""
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                found = os.lstat(os.path.join(folder, name))
                size += max(found.st_size, found.st_blocks * 512)
            except FileNotFoundError:  # shipped and deleted just now
                continue
    return size


class Backlog:
    """Holds output back from fluent-bit while that does not get rid of what it has read.

    It makes a chunk file of 4 KiB at least each time it flushes, for a single line too. What it has not read takes no
    more of the disk than its bytes, and comes in chunks of 2 MB later.
    """

    def __init__(self, directory: str) -> None:
        self.chunks = os.path.join(directory, CHUNKS)
        self.streams: list[StreamFile] = []
        """Given by whoever writes them."""
        self.holds = False
        self.look_at = 0.0

    def look(self) -> None:
        """Hold back or release what the number of chunks asks for. To be called often."""
        now = time.monotonic()
        if now < self.look_at:
            return
        self.look_at = now + LOOK_S
        waiting = files_below(self.chunks)
        if not self.holds and waiting >= HOLD_AT:
            self.holds = True
            for stream in self.streams:
                stream.holds = True
        elif self.holds and waiting <= RELEASE_AT:
            self.release()
            self.look_at = now + RELEASE_PAUSE_S

    def release(self) -> None:
        for stream in self.streams:
            stream.release()
        self.holds = any(stream.holds for stream in self.streams)

    def release_all(self) -> None:
        while self.holds:
            self.release()


def files_below(directory: str) -> int:
    """Files in directories of ``directory``; 0 when there is none."""
    found = 0
    try:
        for entry in os.scandir(directory):
            if entry.is_dir(follow_symlinks=False):
                found += len(os.listdir(entry.path))
    except OSError:
        return found  # nobody reads there, or it has just gone
    return found


def delete_stored(streams: list[StreamFile], stored: Callable[[], dict[str, int]]) -> None:
    """``stored`` asks up to which number the lines of each stream are safe; it may know of none."""
    numbers = stored()
    for stream in streams:
        stream.delete_below(numbers.get(stream.name, 0))


def delete_oldest(streams: list[StreamFile], excess: int) -> None:
    """Delete finished segments, as many as ``excess`` bytes need, of the stream that has more of them first."""
    while excess > 0:
        stream = max(streams, key=lambda stream: len(stream.finished))
        if not stream.finished:
            return
        excess -= stream.segment_bytes
        stream.delete_below(stream.finished[0][1])


def unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return  # a shipper was faster


class Wakeup:
    """Tells a shipper on the same machine that there is something new, over a named pipe if there is one."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, "wake")
        self.exists = os.path.exists(self.path)
        self.fd = -1

    def send(self) -> None:
        if not self.exists:
            return
        try:
            if self.fd < 0:
                self.fd = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
            os.write(self.fd, b".")
        except BlockingIOError:
            return  # it has been told already
        except OSError:
            # No shipper is there now; it reads everything when it comes.
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1


def start(argv: list[str], stdout: int, stderr: int) -> tuple[int | None, int]:
    """Fork and execute ``argv``; returns its pid and 0, or None and the errno when it could not be executed."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            for number in (*FORWARDED, signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(argv[0], argv)  # noqa: S606  the task is what the user wrote
        except OSError as error:
            os.write(tell, b"%d" % (error.errno or errno.EIO))
        finally:
            os._exit(127)
    os.close(tell)
    failure = os.read(told, 16)
    os.close(told)
    if failure:
        os.waitpid(pid, 0)
        return None, int(failure)
    return pid, 0


class Child:
    """The task, and the signals that are passed on to it."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.early: list[int] = []
        self.was_asked_to_end = False

    def forward(self, number: int, _frame: object) -> None:
        self.was_asked_to_end = self.was_asked_to_end or number == signal.SIGTERM
        if self.pid is not None:
            os.kill(self.pid, number)
        else:
            self.early.append(number)

    def started(self, pid: int) -> None:
        self.pid = pid
        for number in self.early:
            os.kill(pid, number)

    def reap(self) -> None:
        """Collect every process that has ended, orphans too: in a container this process is the first."""
        while True:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if ended == 0:
                return
            if ended == self.pid:
                self.pid = None
                self.exit_code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def run(
    argv: list[str],
    directory: str,
    segment_bytes: int,
    cap_bytes: int,
    *,
    when_full: str,
    stored: Callable[[], dict[str, int]] | None,
    child: Child,
    backlog: Backlog,
) -> int:
    """Run ``argv`` as ``child`` and capture what it prints; returns its exit code."""
    echo = bool(os.environ.get("DET_SHIPPER_EMIT_STDOUT_LOGS"))
    stdout = StreamFile(directory, "stdout", segment_bytes, 1 if echo else None)
    stderr = StreamFile(directory, "stderr", segment_bytes, 2 if echo else None)
    wakeup = Wakeup(directory)
    streams = backlog.streams = [stdout, stderr]

    def make_room(excess: int) -> None:
        if when_full == "drop":
            delete_oldest(streams, excess)
        elif stored is not None:
            delete_stored(streams, stored)

    space = CaptureQuota(directory, cap_bytes, make_room)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()

    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in FORWARDED:
        signal.signal(number, child.forward)
    # The first process of a container never gets a signal that it does not handle yet, unless it was held back.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)

    pid, failure = start(argv, out_write, err_write)
    os.close(out_write)
    os.close(err_write)
    if pid is None:
        exit_code = 127 if failure in (errno.ENOENT, errno.ENOTDIR) else 126
        stderr.write([b"ERROR: cannot execute %s: %s" % (os.fsencode(argv[0]), os.strerror(failure).encode())])
    else:
        child.started(pid)
        exit_code = pump(child, {out_read: stdout, err_read: stderr}, space, wakeup, woken, backlog=backlog)
    stdout.finish(exit_code)
    stderr.finish(exit_code)
    wakeup.send()
    if 0 < exit_code < 128 and stderr.last.startswith(MISSING_MODULE):
        tell_reason(stderr.last)
    return exit_code


def pump(
    child: Child,
    stream_by_pipe: dict[int, StreamFile],
    space: CaptureQuota,
    wakeup: Wakeup,
    woken: int,
    *,
    backlog: Backlog,
) -> int:
    """Copy until the task is over and its pipes are closed, or what it left behind is silent; returns the exit code."""
    unread = set(stream_by_pipe)
    ended_at: float | None = None
    heard_at: float | None = None
    deadline: float | None = None
    full = False
    while True:
        child.reap()
        if child.exit_code is not None:
            full = False
            ended_at = ended_at or time.monotonic()
            deadline = orphans_deadline(ended_at, heard_at or ended_at, is_cut_short=child.was_asked_to_end)
            if not unread or time.monotonic() >= deadline:
                return child.exit_code
        full = full and space.is_full(0)
        timeout = deadline - time.monotonic() if deadline is not None else None
        if full or (backlog.holds and timeout is None):
            timeout = FULL_POLL_S
        ready, _, _ = select.select([woken] if full else [woken, *unread], [], [], timeout)
        written = 0
        heard = False
        for fd in ready:
            data = os.read(fd, READ_BYTES)
            if fd == woken:
                continue
            if not data:
                unread.discard(fd)
                os.close(fd)
                continue
            written += stream_by_pipe[fd].take(data)
            heard = True
        if written or backlog.holds:
            backlog.look()
        if written:
            wakeup.send()
            full = space.is_full(written)
        # Nobody is waited for who fills the disk.
        if heard and ended_at is not None and not full:
            heard_at = time.monotonic()


def orphans_deadline(ended_at: float, heard_at: float, *, is_cut_short: bool) -> float:
    """Until when to read what is printed by processes that outlive the task.

    ended_at      when the task ended
    heard_at      when something was last read since then
    is_cut_short  whether the task was asked to end, so that somebody waits for the end
    """
    if is_cut_short:
        return ended_at + ORPHAN_WAIT_S
    return min(heard_at + ORPHAN_WAIT_S, ended_at + max(log_wait_s(), ORPHAN_WAIT_S))


def seal(directory: str, exit_code: int | None) -> None:
    """End the streams whose writer was killed before it could. Streams that have ended are left as they are.

    Only for when nothing writes there any more. Raises OSError when the task put something else in the place of a file;
    it is not followed, for this may run with more rights than the task had.
    """
    for name in STREAMS:
        segments = _segment_numbers(directory, name)
        current = os.path.join(directory, f"{name}.{segments[-1] if segments else 0}.log")
        fd = os.open(current, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
        try:
            _finish_last_line(fd)
            seq = _next_seq(current)
            if seq == 0 and len(segments) > 1:
                seq = _next_seq(os.path.join(directory, f"{name}.{segments[-2]}.log"))
            if seq is not None:
                records = end_record(seq, exit_code)
                if os.fstat(fd).st_mode & WAITS_FOR_SPACE:
                    records = text_record(seq, LOST % name.encode()) + end_record(seq + 1, exit_code)
                _write_whole(fd, records)
                os.fsync(fd)
        finally:
            os.close(fd)
    Wakeup(directory).send()


def _write_whole(fd: int, data: bytes) -> None:
    """Append ``data``, or nothing of it where there is no space for the whole."""
    size = os.fstat(fd).st_size
    if os.write(fd, data) < len(data):
        os.ftruncate(fd, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def is_sealed(directory: str) -> bool:
    """Whether both streams have ended."""
    for name in STREAMS:
        segments = _segment_numbers(directory, name)
        if not segments or _next_seq(os.path.join(directory, f"{name}.{segments[-1]}.log")) is not None:
            return False
    return True


def lines_printed(directory: str) -> dict[str, int]:
    """Number of lines of each stream that has ended; where its last file is gone, it is left out."""
    found = {}
    for name in STREAMS:
        segments = _segment_numbers(directory, name)
        if segments:
            with open(os.path.join(directory, f"{name}.{segments[-1]}.log"), "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                records = file.read().splitlines()
            if records and _seq_of(records[-1]) is not None and _is_end(records[-1]):
                found[name] = int(records[-1].split(b" ", 2)[1])
    return found


def _segment_numbers(directory: str, stream: str) -> list[int]:
    """Numbers of the segment files of a stream, in order; links and the like are none."""
    files = [entry.name for entry in os.scandir(directory) if entry.is_file(follow_symlinks=False)]
    numbers = [name.split(".")[1] for name in files if name.startswith(stream + ".")]
    return sorted(int(number) for number in numbers if number.isdigit())


def _finish_last_line(fd: int) -> None:
    """Complete a torn last record, check included, or take it away when not even its number and time are whole."""
    size = os.fstat(fd).st_size
    tail = os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES))
    torn = tail[tail.rfind(b"\n") + 1 :]
    if not torn:
        return
    os.ftruncate(fd, size - len(torn))
    if _seq_of(torn) is not None and not _is_end(torn):
        os.write(fd, checked(torn.split(b" ", 1)[1]))


def _next_seq(path: str) -> int | None:
    """Number that follows the last record of a segment, 0 when it has none; None when the stream has ended."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().splitlines()
    for line in reversed(lines):
        seq = _seq_of(line)
        if seq is not None:
            return None if _is_end(line) else seq + 1
    return 0


def _seq_of(line: bytes) -> int | None:
    """Number of a record, of which the end may be missing; None when not even number and time are there."""
    parts = line.split(b" ", 3)
    whole = len(parts) == 4 and parts[1].isdigit() and parts[2].replace(b";eos", b"").isdigit()
    return int(parts[1]) if whole else None


def _is_end(record: bytes) -> bool:
    return b";" in record.split(b" ", 3)[2]


def log_wait_s() -> float:
    """How long the end of a task may be held up until its last lines are delivered."""
    try:
        return float(os.environ.get("DET_LOG_WAIT_TIME", DEFAULT_LOG_WAIT_S))
    except ValueError:
        return DEFAULT_LOG_WAIT_S


class Patience:
    """How long the end of a task may be held up until its last lines are delivered: so many seconds in which the log
    intake answers, however slowly, and so many in which it cannot be reached. Once the container is asked to end, or
    somebody else waits for what the task holds, only the first kind is left."""

    def __init__(self, slow_s: float, away_s: float, is_cut_short: Callable[[], bool]) -> None:
        self.slow_s = slow_s
        self.away_s = max(away_s, slow_s)
        self.is_cut_short = is_cut_short
        self.at = time.monotonic()

    def left_s(self, *, is_away: bool) -> float:
        """Count the time since the last call for what it was; 0 when it was the last."""
        now = time.monotonic()
        spent, self.at = now - self.at, now
        if is_away and not self.is_cut_short():
            self.away_s = max(0.0, self.away_s - spent)
            return self.away_s
        self.slow_s = max(0.0, self.slow_s - spent)
        return self.slow_s


def tell_reason(words: bytes, paths: Sequence[str] | None = None) -> None:
    """Give the reason of the end to whoever started the container, unless the task has given one itself.

    paths  of which the first that is there is read by it: one for processes, one for Kubernetes
    """
    run_dir = os.environ.get("DET_RUN_DIR", "/run/determined")
    for path in paths or (os.path.join(run_dir, "termination-log"), TERMINATION_LOG):
        try:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            if os.fstat(fd).st_size == 0:
                os.write(fd, words)
        except OSError:
            pass  # no space: the exit code says enough, and must not become another one
        finally:
            os.close(fd)
        return


def tell_undelivered(streams: list[StreamFile], path: str = TERMINATION_LOG) -> None:
    """Say for whoever started the container that not everything was delivered, and how many lines there were.

    Appended: the task may have left words of its own there. The launcher reads it (``allocations/state/pods.py``).
    """
    printed = ", ".join(f"{stream.name} {stream.seq}" for stream in streams)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # not started by Kubernetes
    os.write(fd, f"\nlog not delivered, lines printed: {printed}\n".encode())
    os.close(fd)


def main(
    args: list[str],
    stored: Callable[[], dict[str, int]] | None = None,
    child: Child | None = None,
    backlog: Backlog | None = None,
) -> int:
    """Run what follows ``--`` and return its exit code.

    stored  tells up to which number each stream is safe; needed with ``--when-full stored``
    child, backlog  given by whoever wants to know afterwards what happened to the task and to what it printed
    """
    flags = {"--dir": ".", "--segment-bytes": str(32 << 20), "--cap-bytes": str(1 << 30), "--when-full": "block"}
    while args and args[0] != "--":
        flag = args.pop(0)
        if flag not in flags or not args:
            sys.exit(f"capture: cannot use {flag}")
        flags[flag] = args.pop(0)
    if len(args) < 2:
        sys.exit("capture: no command")
    cap_bytes = int(flags["--cap-bytes"])
    return run(
        args[1:],
        flags["--dir"],
        # Only segments that are finished can go away, so the ones being written must leave room below the cap.
        min(int(flags["--segment-bytes"]), cap_bytes // 8),
        cap_bytes,
        when_full=flags["--when-full"],
        stored=stored,
        child=child or Child(),
        backlog=backlog or Backlog(flags["--dir"]),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
