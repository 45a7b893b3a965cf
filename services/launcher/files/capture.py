"""Runs a task and writes every line it prints, with its number and time, to files from which a shipper sends them.

Put into every task container and run with whatever Python is there, so it uses the standard library of Python 3.8 only
and little of that: it stays in memory for as long as the task runs. The grammar of the files is in
``libs/capture/lines.py``; the rules are those of spec/logs.md 2.3, 2.5 and 13.2:

* the task gets pipes, never files: ``wrap_rank`` reopens its standard output by name;
* a line ends at ``\\n`` or ``\\r``, or is cut after 8191 bytes, not inside a UTF-8 character;
* files are only ever appended to; a new one begins at ``--segment-bytes``;
* when ``--cap-bytes`` lie unshipped, the pipes are left unread and the task waits (``--when-full block``), or the
  oldest file goes and a line says so (``--when-full drop``), for shippers that do not delete what they have sent;
* exit code of the task, 128+n after signal n, 127 command not found, 126 not executable;
* output of processes that outlive the task is read for one more second.
"""

import errno
import os
import select
import signal
import sys
import time

MAX_PAYLOAD = 8191
READ_BYTES = 65536
ORPHAN_WAIT_S = 1.0
FULL_POLL_S = 0.5
FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH")


def split_lines(pending, data):
    """Complete lines of ``pending + data``, each at most 8191 bytes, and the unfinished rest."""
    pieces = (pending + data).replace(b"\r", b"\n").split(b"\n")
    rest = pieces.pop()
    lines = []
    for piece in pieces:
        while len(piece) > MAX_PAYLOAD:
            at = cut_position(piece)
            lines.append(piece[:at])
            piece = piece[at:]
        lines.append(piece)
    while len(rest) > MAX_PAYLOAD:
        at = cut_position(rest)
        lines.append(rest[:at])
        rest = rest[at:]
    return lines, rest


def cut_position(piece):
    """Where to cut a line that is too long: at 8191 bytes, or up to three earlier to keep a UTF-8 character whole."""
    for at in range(MAX_PAYLOAD, MAX_PAYLOAD - 4, -1):
        if piece[at] & 0xC0 != 0x80:
            return at
    return MAX_PAYLOAD  # four continuation bytes in a row are no UTF-8


class StreamFile:
    """The segment files of one stream."""

    def __init__(self, directory, name, segment_bytes):
        self.directory = directory
        self.name = name
        self.segment_bytes = segment_bytes
        self.segment = 0
        self.seq = 0
        self.size = 0
        self.pending = b""
        self.fd = self._open()

    def _open(self):
        path = os.path.join(self.directory, "%s.%d.log" % (self.name, self.segment))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def take(self, data):
        lines, self.pending = split_lines(self.pending, data)
        self.write(lines)

    def write(self, payloads):
        if not payloads:
            return
        now = time.time_ns()
        records = []
        for payload in payloads:
            records.append(b"%d %d %s\n" % (self.seq, now, payload))
            self.seq += 1
        self._append(b"".join(records))

    def finish(self, exit_code):
        """Write what is unfinished and the end of the stream."""
        if self.pending:
            self.write([self.pending])
            self.pending = b""
        self._append(b"%d %d;eos %s\n" % (self.seq, time.time_ns(), b"-" if exit_code is None else b"%d" % exit_code))
        os.fsync(self.fd)

    def _append(self, data):
        if self.size >= self.segment_bytes:
            os.close(self.fd)
            self.segment += 1
            self.size = 0
            self.fd = self._open()
        self.size += len(data)
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.fd, view) :]
            except OSError as error:
                # A full disk is back-pressure like any other: the task waits until there is room again.
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                time.sleep(FULL_POLL_S)


class Space:
    """How much lies unshipped on the volume, and what to do when that is too much."""

    def __init__(self, directory, streams, cap_bytes, drop_oldest):
        self.directory = directory
        self.streams = streams
        self.cap_bytes = cap_bytes
        self.drop_oldest = drop_oldest
        self.counted = 0
        self.written = 0

    def is_full(self, added):
        """Count ``added`` bytes; True when the pipes should be left unread for now."""
        self.written += added
        if self.counted + self.written <= self.cap_bytes:
            return False
        self._count()
        if self.counted <= self.cap_bytes:
            return False
        return not (self.drop_oldest and self._drop())

    def _count(self):
        self.written = 0
        self.counted = sum(size for _, size, _ in self._segments())

    def _segments(self):
        found = []
        for entry in os.scandir(self.directory):
            parts = entry.name.split(".")
            if len(parts) == 3 and parts[2] == "log" and parts[0] in ("stdout", "stderr"):
                stat = entry.stat()
                found.append((stat.st_mtime_ns, stat.st_size, entry.name))
        return sorted(found)

    def _drop(self):
        current = {"%s.%d.log" % (stream.name, stream.segment) for stream in self.streams}
        for _, size, name in self._segments():
            if name not in current:
                os.unlink(os.path.join(self.directory, name))
                self.counted -= size
                stream = self.streams[0] if name.startswith("stdout") else self.streams[1]
                stream.write([b"WARNING: %d bytes of older output were dropped before they could be shipped" % size])
                return True
        return False


class Wakeup:
    """Tells a shipper on the same machine that there is something new, over a named pipe if there is one."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "wake")
        self.fd = None
        self.exists = os.path.exists(self.path)

    def send(self):
        if not self.exists:
            return
        try:
            if self.fd is None:
                self.fd = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.write(self.fd, b".")
        except BlockingIOError:
            pass  # it has been told already
        except OSError:
            # No shipper is there now; it reads everything when it comes.
            if self.fd is not None:
                os.close(self.fd)
                self.fd = None


def start(argv, stdout, stderr):
    """Fork and execute ``argv``; returns (pid, 0), or (None, errno) when it could not be executed."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(told)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            for name in FORWARDED + ("SIGCHLD", "SIGPIPE"):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            os.execvp(argv[0], argv)
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


def run(argv, directory, segment_bytes, cap_bytes, drop_oldest):
    """Run ``argv`` and capture it; returns its exit code."""
    streams = [StreamFile(directory, "stdout", segment_bytes), StreamFile(directory, "stderr", segment_bytes)]
    space = Space(directory, streams, cap_bytes, drop_oldest)
    wakeup = Wakeup(directory)
    pipes = [os.pipe(), os.pipe()]
    child = [None]
    early = []

    def forward(number, _frame):
        if child[0] is None:
            early.append(number)
            return
        try:
            os.kill(child[0], number)
        except ProcessLookupError:
            pass

    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for name in FORWARDED:
        signal.signal(getattr(signal, name), forward)

    pid, failure = start(argv, pipes[0][1], pipes[1][1])
    for _, write_end in pipes:
        os.close(write_end)
    if pid is None:
        code = 127 if failure in (errno.ENOENT, errno.ENOTDIR) else 126
        streams[1].write([b"ERROR: cannot execute %s: %s" % (os.fsencode(argv[0]), os.strerror(failure).encode())])
        exit_code = code
    else:
        child[0] = pid
        for number in early:
            os.kill(pid, number)
        exit_code = pump(pid, child, dict(zip([read for read, _ in pipes], streams)), space, wakeup, woken)
    for stream in streams:
        stream.finish(exit_code)
    wakeup.send()
    return exit_code


def pump(pid, child, stream_of_pipe, space, wakeup, woken):
    """Copy until the task is over and its pipes are closed, or a second has gone by since; returns the exit code."""
    exit_code = None
    deadline = None
    full = False
    unread = set(stream_of_pipe)
    while unread or exit_code is None:
        if full and exit_code is None:
            full = space.is_full(0)
        waiting_for = [woken] if full else [woken, *unread]
        timeout = FULL_POLL_S if full else None
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            timeout = left if timeout is None else min(left, timeout)
        ready, _, _ = select.select(waiting_for, [], [], timeout)
        got = 0
        for fd in ready:
            if fd == woken:
                os.read(woken, 4096)
                continue
            data = os.read(fd, READ_BYTES)
            if not data:
                unread.discard(fd)
                os.close(fd)
                continue
            got += len(data)
            stream_of_pipe[fd].take(data)
        if got:
            wakeup.send()
            full = space.is_full(got) and exit_code is None
        if exit_code is None or unread:
            ended = reap(pid)
            if ended is not None and exit_code is None:
                exit_code = ended
                child[0] = None
                full = False
                deadline = time.monotonic() + ORPHAN_WAIT_S
    return exit_code


def reap(pid):
    """Collect every child that has ended, orphans too: in a container this process is the first. Exit code of ``pid``."""
    code = None
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if ended == 0:
            return code
        if ended == pid:
            code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def seal(directory, exit_code):
    """End the streams whose writer was killed before it could; streams that have ended are left alone."""
    for name in ("stdout", "stderr"):
        segments = sorted(
            int(entry.split(".")[1])
            for entry in os.listdir(directory)
            if entry.startswith(name + ".") and entry.endswith(".log") and entry.split(".")[1].isdigit()
        )
        segment = segments[-1] if segments else 0
        path = os.path.join(directory, "%s.%d.log" % (name, segment))
        seq = 0
        torn = False
        lines = _tail_lines(path)
        # A segment may have been begun and not written to: then the numbers go on from the one before it.
        if not lines and len(segments) > 1:
            lines = _tail_lines(os.path.join(directory, "%s.%d.log" % (name, segments[-2])))
        elif lines:
            torn = not lines[-1].endswith(b"\n")
        for line in reversed(lines):
            number, _, rest = line.partition(b" ")
            if number.isdigit() and rest:
                if b";eos " in rest.split(b" ", 1)[0] + b" " and rest.partition(b";")[0].isdigit():
                    seq = None
                else:
                    seq = int(number) + 1
                break
        if seq is None:
            continue
        code = b"-" if exit_code is None else b"%d" % exit_code
        record = (b"\n" if torn else b"") + b"%d %d;eos %s\n" % (seq, time.time_ns(), code)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(fd, record)
        os.fsync(fd)
        os.close(fd)
    Wakeup(directory).send()


def _tail_lines(path):
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return []
    size = os.fstat(fd).st_size
    data = os.pread(fd, 4 * MAX_PAYLOAD, max(0, size - 4 * MAX_PAYLOAD))
    os.close(fd)
    lines = data.splitlines(keepends=True)
    return lines[1:] if size > 4 * MAX_PAYLOAD else lines


def main(args):
    directory = "."
    segment_bytes = 32 << 20
    cap_bytes = 1 << 30
    drop_oldest = False
    while args:
        flag = args.pop(0)
        if flag == "--":
            break
        value = args.pop(0)
        if flag == "--dir":
            directory = value
        elif flag == "--segment-bytes":
            segment_bytes = int(value)
        elif flag == "--cap-bytes":
            cap_bytes = int(value)
        elif flag == "--when-full":
            drop_oldest = value == "drop"
        else:
            sys.exit("capture: unknown flag " + flag)
    if not args:
        sys.exit("capture: no command")
    return run(args, directory, segment_bytes, cap_bytes, drop_oldest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
