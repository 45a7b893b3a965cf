"""The capture wrapper: what ends a line, what is written down, what comes back as exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.capture.lines import CapturedLine, EndOfStream, decode, encode_end, encode_line
from services.launcher.files import capture
from tests.harness.waiting import PATIENCE_S, wait_until

SCRIPT = capture.__file__
MUCH = "seq -f %0200.0f 5000"
"""A megabyte, much more than a pipe holds."""


def wrapped(directory: Path, *argv: str, flags: tuple[str, ...] = ()) -> list[str]:
    assert SCRIPT is not None
    return [sys.executable, "-I", "-S", SCRIPT, "--dir", str(directory), *flags, "--", *argv]


def run(directory: Path, *argv: str, flags: tuple[str, ...] = ()) -> int:
    return subprocess.run(wrapped(directory, *argv, flags=flags), check=False, timeout=PATIENCE_S).returncode


def records(directory: Path, stream: str) -> list[CapturedLine | EndOfStream]:
    """All records of a stream; fails on one that is none, and on gaps."""
    paths = sorted(directory.glob(f"{stream}.*.log"), key=lambda path: int(path.name.split(".")[1]))
    found = [decode(line) for path in paths for line in path.read_bytes().split(b"\n")[:-1]]
    assert None not in found
    kept = [record for record in found if record is not None]
    assert [record.seq for record in kept] == list(range(len(kept)))
    return kept


def printed(directory: Path, stream: str = "stdout") -> list[bytes]:
    return [record.payload for record in records(directory, stream) if isinstance(record, CapturedLine)]


def end(directory: Path, stream: str = "stdout") -> int | None:
    last = records(directory, stream)[-1]
    assert isinstance(last, EndOfStream)
    return last.exit_code


@pytest.mark.parametrize(
    ("data", "lines", "rest"),
    [
        (b"a\nb\n", [b"a", b"b"], b""),
        (b"3\r\n", [b"3"], b""),
        (b"3\r", [b"3"], b"\r"),
        (b"10%\r20%\rdone", [b"10%", b"20%"], b"done"),
        (b"", [], b""),
        (b"x" * 8191, [], b"x" * 8191),
        (b"x" * 8192, [b"x" * 8191], b"x"),
        (b"x" * 8191 + b"\n", [b"x" * 8191], b""),
        (b"x" * 8190 + "é".encode() + b"y", [b"x" * 8190], "éy".encode()),
        (b"x" * 8189 + "é".encode() + b"y", [b"x" * 8189 + "é".encode()], b"y"),
        (b"x" * 8189 + "\N{SNOWMAN}".encode(), [b"x" * 8189], "\N{SNOWMAN}".encode()),
        (b"\xff" * 8192, [b"\xff" * 8191], b"\xff"),
        (b"\x80" * 8200, [b"\x80" * 8191], b"\x80" * 9),
    ],
)
def test_lines_are_split_and_cut(data: bytes, lines: list[bytes], rest: bytes) -> None:
    assert capture.split_lines(b"", data) == (lines, rest)


@given(st.lists(st.binary(max_size=20000), max_size=5))
def test_no_byte_is_lost_however_it_arrives(pieces: list[bytes]) -> None:
    lines: list[bytes] = []
    pending = b""
    for piece in pieces:
        new, pending = capture.split_lines(pending, piece)
        lines += new
    assert all(len(line) <= 8191 for line in [*lines, pending])
    whole = b"".join(pieces).replace(b"\r", b"").replace(b"\n", b"")
    assert b"".join(lines) + pending.replace(b"\r", b"") == whole


@given(st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\r\n", b""]), max_size=12))
def test_a_line_ends_once_at_a_carriage_return_and_a_line_feed(pieces: list[bytes]) -> None:
    lines: list[bytes] = []
    pending = b""
    for piece in pieces:
        new, pending = capture.split_lines(pending, piece)
        lines += new
    ended = b"".join(pieces).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    assert (lines, pending.replace(b"\r", b"")) == (ended[:-1], ended[-1])


def test_output_of_windows_has_no_empty_lines(tmp_path: Path) -> None:
    assert run(tmp_path, "sh", "-c", "printf 'a\\r'; sleep 0.2; printf '\\nb\\r\\n\\r\\nc\\r'") == 0
    assert printed(tmp_path) == [b"a", b"b", b"", b"c"]


def test_output_is_written_down_with_its_end(tmp_path: Path) -> None:
    assert run(tmp_path, "sh", "-c", "printf 'a\\rb\\nlast'; echo oops >&2; exit 3") == 3
    assert printed(tmp_path) == [b"a", b"b", b"last"]
    assert printed(tmp_path, "stderr") == [b"oops"]
    assert end(tmp_path) == end(tmp_path, "stderr") == 3
    first = records(tmp_path, "stdout")[0]
    assert abs(first.timestamp_ns - time.time_ns()) < 60 * 10**9


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("/no/such/program",), 127),
        (("no-such-program",), 127),
        (("/etc/passwd",), 126),
        (("/",), 126),
        (("sh", "-c", "kill -9 $$"), 137),
        (("sh", "-c", "kill -15 $$"), 143),
        (("true",), 0),
    ],
)
def test_exit_codes(tmp_path: Path, argv: tuple[str, ...], code: int) -> None:
    assert run(tmp_path, *argv) == code
    assert end(tmp_path) == code


def test_why_nothing_ran_is_told(tmp_path: Path) -> None:
    run(tmp_path, "/no/such/program")
    assert printed(tmp_path, "stderr") == [b"ERROR: cannot execute /no/such/program: No such file or directory"]


def test_standard_input_is_empty_and_outputs_are_pipes(tmp_path: Path) -> None:
    script = (
        "import os, stat, sys; print(sys.stdin.read() == '', *(stat.S_ISFIFO(os.fstat(n).st_mode) for n in (1, 2)))"
    )
    assert run(tmp_path, sys.executable, "-c", script) == 0
    assert printed(tmp_path) == [b"True True True"]


def test_output_can_be_reopened_by_name(tmp_path: Path) -> None:
    # As wrap_rank does through the links that task-setup.sh makes.
    assert run(tmp_path, "sh", "-c", "echo one; echo two > /proc/$$/fd/1; echo three") == 0
    assert printed(tmp_path) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "USR1", "USR2", "WINCH"])
def test_signals_are_passed_on(tmp_path: Path, name: str) -> None:
    script = f"trap 'echo got; exit 5' {name}; echo ready; while true; do sleep 0.02; done"
    process = subprocess.Popen(wrapped(tmp_path, "bash", "-c", script))
    wait_until(lambda: b"ready" in printed(tmp_path), every_s=0.01)
    process.send_signal(getattr(signal, f"SIG{name}"))
    assert process.wait(timeout=PATIENCE_S) == 5
    assert printed(tmp_path) == [b"ready", b"got"]


def test_signal_that_comes_before_the_wrapper_is_ready_is_passed_on(tmp_path: Path) -> None:
    def ask_already() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, capture.FORWARDED)
        os.kill(os.getpid(), signal.SIGTERM)

    argv = wrapped(tmp_path, "sleep", "300")
    done = subprocess.run(argv, check=False, timeout=PATIENCE_S, preexec_fn=ask_already)
    assert done.returncode == 128 + signal.SIGTERM


def patient(directory: Path, silence_s: float, script: str) -> list[str]:
    """The wrapper with another patience: on a slow machine a second is short."""
    patience = f"import sys; sys.path.insert(0, sys.argv.pop(1)); import capture; capture.ORPHAN_WAIT_S = {silence_s}; "
    assert SCRIPT is not None
    argv = wrapped(directory, "sh", "-c", script)
    at = argv.index(str(SCRIPT))
    argv[at : at + 1] = ["-c", f"{patience}sys.exit(capture.main(sys.argv[1:]))", str(Path(str(SCRIPT)).parent)]
    return argv


def test_silent_orphans_do_not_delay_the_end(tmp_path: Path) -> None:
    script = "(sleep 0.3; echo soon; sleep 45; echo late) & exit 4"
    began = time.monotonic()
    assert subprocess.run(patient(tmp_path, 4.0, script), check=False, timeout=PATIENCE_S).returncode == 4
    assert time.monotonic() - began < 40
    assert printed(tmp_path) == [b"soon"]


def test_orphans_are_heard_while_they_print(tmp_path: Path) -> None:
    script = "(for i in 1 2 3 4 5 6 7 8; do sleep 0.5; echo $i; done) & exit 4"
    assert subprocess.run(patient(tmp_path, 3.0, script), check=False, timeout=PATIENCE_S).returncode == 4
    assert printed(tmp_path) == [b"%d" % number for number in range(1, 9)]


ENDLESS = "(while kill -0 $$ 2>/dev/null; do sleep 0.05; done; while echo x; do sleep 0.1; done) & exit 4"
"""What it leaves behind begins to print when the wrapper has seen that the task has ended."""


def test_orphans_that_never_end_are_heard_as_long_as_configured(tmp_path: Path) -> None:
    environment = {**os.environ, "DET_LOG_WAIT_TIME": "4"}
    argv = patient(tmp_path, 3.0, ENDLESS)
    assert subprocess.run(argv, check=False, timeout=PATIENCE_S, env=environment).returncode == 4
    assert set(printed(tmp_path)) == {b"x"}


def test_stop_does_not_wait_for_orphans(tmp_path: Path) -> None:
    environment = {**os.environ, "DET_LOG_WAIT_TIME": "2000"}
    process = subprocess.Popen(patient(tmp_path, 4.0, ENDLESS), env=environment)
    wait_until(lambda: b"x" in printed(tmp_path))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_S) == 4


def test_closed_outputs_do_not_end_the_wait(tmp_path: Path) -> None:
    assert run(tmp_path, "sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 6") == 6


def test_files_are_continued_in_segments(tmp_path: Path) -> None:
    script = "for i in $(seq 200); do echo line $i; sleep 0.001; done"
    assert run(tmp_path, "sh", "-c", script, flags=("--segment-bytes", "500")) == 0
    assert len(list(tmp_path.glob("stdout.*.log"))) > 3
    assert printed(tmp_path) == [b"line %d" % number for number in range(1, 201)]


def test_task_waits_when_too_much_is_unshipped(tmp_path: Path) -> None:
    flags = ("--segment-bytes", "20000", "--cap-bytes", "300000")
    process = subprocess.Popen(wrapped(tmp_path, "sh", "-c", f"{MUCH}; echo done", flags=flags))
    taken = b""
    deadline = time.monotonic() + 60
    while process.poll() is None:
        assert time.monotonic() < deadline
        paths = sorted(tmp_path.glob("stdout.*.log"), key=lambda path: int(path.name.split(".")[1]))
        assert sum(path.stat().st_size for path in paths) < 450_000
        for path in paths[:-1]:
            taken += path.read_bytes()
            path.unlink()
        time.sleep(0.01)
    taken += b"".join(path.read_bytes() for path in sorted(tmp_path.glob("stdout.*.log")))
    lines = [record.payload for raw in taken.split(b"\n")[:-1] if isinstance(record := decode(raw), CapturedLine)]
    assert lines == [b"%0200d" % number for number in range(1, 5001)] + [b"done"]


def test_oldest_output_goes_where_nobody_reads_it(tmp_path: Path) -> None:
    flags = ("--segment-bytes", "20000", "--cap-bytes", "100000", "--when-full", "drop")
    assert run(tmp_path, "sh", "-c", MUCH, flags=flags) == 0
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 250_000
    assert not (tmp_path / "stdout.0.log").exists()
    paths = sorted(tmp_path.glob("stdout.*.log"), key=lambda path: int(path.name.split(".")[1]))
    kept = [decode(record) for path in paths for record in path.read_bytes().split(b"\n")[:-1]]
    assert [record.payload for record in kept if isinstance(record, CapturedLine)] == [
        b"%0200d" % number for number in range(5001 - len(kept) + 1, 5001)
    ]


def test_what_a_shipper_keeps_counts_as_well(tmp_path: Path) -> None:
    (tmp_path / ".flb").mkdir()
    (tmp_path / ".flb" / "chunk").write_bytes(bytes(100_000))
    space = capture.CaptureQuota(str(tmp_path), 150_000, lambda _excess: None)
    assert not space.is_full(10_000)
    (tmp_path / "stdout.0.log").write_bytes(bytes(60_000))
    assert space.is_full(10_000)
    (tmp_path / ".flb" / "chunk").unlink()
    assert not space.is_full(0)


def test_what_small_files_take_of_the_disk_counts_and_not_what_is_in_them(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / str(number)).write_bytes(b"x")
    assert capture.size_of(str(tmp_path)) >= 100 * 512


def test_others_fill_the_directory_while_little_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = capture.CaptureQuota(str(tmp_path), 1 << 20, lambda _excess: None)
    assert not space.is_full(1)
    (tmp_path / "chunk").write_bytes(bytes(2 << 20))
    assert not space.is_full(1), "it is not counted at every line"
    monkeypatch.setattr(capture, "COUNT_AGAIN_S", 0)
    assert space.is_full(1)


def chunks(directory: Path, count: int) -> None:
    """What fluent-bit has read and not delivered."""
    folder = directory / ".flb" / "tail.0"
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for number in range(count):
        (folder / f"{number}.flb").touch()


def test_nothing_more_is_given_to_a_shipper_that_gets_rid_of_nothing(tmp_path: Path) -> None:
    chunks(tmp_path, capture.HOLD_AT)
    wait = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    script = f"echo first; for i in 1 2 3; do sleep 0.3; echo held $i; done; {wait}; echo last"
    process = subprocess.Popen(wrapped(tmp_path, "sh", "-c", script))
    held = tmp_path / "stdout.1.held"
    wait_until(lambda: held.exists() and b"held 3" in held.read_bytes())
    assert b"held 2" not in (tmp_path / "stdout.0.log").read_bytes()
    chunks(tmp_path, capture.RELEASE_AT)
    wait_until(lambda: not held.exists())
    (tmp_path / "go").touch()
    assert process.wait(PATIENCE_S) == 0
    assert printed(tmp_path) == [b"first", b"held 1", b"held 2", b"held 3", b"last"]
    assert end(tmp_path) == 0


@pytest.mark.parametrize("is_away", [True, False])
def test_an_intake_that_is_away_is_waited_for_longer_than_one_that_is_slow(is_away: bool) -> None:
    is_cut_short = False
    patience = capture.Patience(30, 120, lambda: is_cut_short)
    patience.at -= 40
    assert (patience.left_s(is_away=is_away) > 79) is is_away
    is_cut_short = True
    assert patience.left_s(is_away=is_away) == pytest.approx(30 if is_away else 0, abs=1)


def test_how_many_lines_there_were_is_told_beside_the_words_of_the_task(tmp_path: Path) -> None:
    said = tmp_path / "termination-log"
    said.write_text("out of memory")
    streams = [capture.StreamFile(str(tmp_path), name, 1000, None) for name in ("stdout", "stderr")]
    streams[0].write([b"a", b"b"])
    capture.tell_undelivered(streams, str(said))
    assert said.read_text() == "out of memory\nlog not delivered, lines printed: stdout 2, stderr 0\n"
    capture.tell_undelivered(streams, str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("script", "left", "reason"),
    [
        ("import a_module_of_nobody", "", "ModuleNotFoundError: No module named 'a_module_of_nobody'"),
        ("import a_module_of_nobody", "the task's own words", "the task's own words"),
        ("print('ModuleNotFoundError: it goes on')\nimport sys; sys.exit('something else')", "", ""),
        ("import sys; sys.stderr.write('ModuleNotFoundError: of no consequence')", "", ""),
        ("import sys, os; sys.stderr.write('ModuleNotFoundError: x\\n'); os.kill(os.getpid(), 9)", "", ""),
    ],
    ids=["lacks a module", "says it itself", "fails otherwise", "succeeds", "is killed"],
)
def test_the_module_that_a_task_lacks_is_the_reason_of_its_end(
    script: str, left: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_RUN_DIR", str(tmp_path))
    (tmp_path / "termination-log").write_text(left)
    run(tmp_path, sys.executable, "-c", script)
    assert (tmp_path / "termination-log").read_text() == reason


def test_a_reason_that_finds_no_space_or_no_file_ends_nothing(tmp_path: Path) -> None:
    capture.tell_reason(b"x", ["/dev/full"])
    capture.tell_reason(b"x", [str(tmp_path / "none")])
    assert not (tmp_path / "none").exists()


def test_named_pipe_tells_that_there_is_something(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "wake")
    fd = os.open(tmp_path / "wake", os.O_RDWR | os.O_NONBLOCK)
    assert run(tmp_path, "echo", "x") == 0
    assert os.read(fd, 100)
    os.close(fd)


A, B, END = encode_line(0, 5, b"a"), encode_line(1, 5, b"b"), encode_end(1, 5, 0)


@pytest.mark.parametrize(
    ("content", "lines", "seq"),
    [
        (b"", [], 0),
        (A + B, [b"a", b"b"], 2),
        (A + encode_line(1, 5, b"torn")[:-2], [b"a", b"tor"], 2),
        (A + B[:-3], [b"a"], 1),
        (A + B[:-5], [b"a"], 1),
        (A + B[:4], [b"a"], 1),
        (A + END[:-3], [b"a"], 1),
        (encode_line(0, 5, b"x" * 8191), [b"x" * 8191], 1),
    ],
)
def test_streams_of_a_killed_wrapper_are_ended_once(
    tmp_path: Path, content: bytes, lines: list[bytes], seq: int
) -> None:
    (tmp_path / "stdout.0.log").write_bytes(content)
    assert not capture.is_sealed(str(tmp_path))
    capture.seal(str(tmp_path), 9)
    capture.seal(str(tmp_path), 10)
    assert printed(tmp_path) == lines
    assert records(tmp_path, "stdout")[-1].seq == seq
    assert end(tmp_path) == end(tmp_path, "stderr") == 9
    assert capture.is_sealed(str(tmp_path))


def test_numbers_go_on_from_the_segment_before_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "stdout.3.log").write_bytes(A + B)
    (tmp_path / "stdout.4.log").write_bytes(b"")
    capture.seal(str(tmp_path), None)
    assert records(tmp_path, "stdout")[-1].seq == 2
    assert end(tmp_path) is None


def test_end_of_a_task_that_ended_is_left_alone(tmp_path: Path) -> None:
    run(tmp_path, "sh", "-c", "echo x; exit 3")
    before = (tmp_path / "stdout.0.log").read_bytes()
    assert capture.is_sealed(str(tmp_path))
    capture.seal(str(tmp_path), 99)
    assert (tmp_path / "stdout.0.log").read_bytes() == before


def test_link_in_the_place_of_a_file_is_never_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"0 1 theirs\n")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "stdout.0.log").symlink_to(victim)
    (logs / "wake").symlink_to(victim)
    assert run(logs, "echo", "mine") == 1
    assert not capture.is_sealed(str(logs))
    with pytest.raises(OSError, match="symbolic links"):
        capture.seal(str(logs), 0)
    assert victim.read_bytes() == b"0 1 theirs\n"


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir])
def test_nobody_waits_for_what_a_task_put_in_the_place_of_a_file(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(tmp_path / "stdout.0.log")
    assert not capture.is_sealed(str(tmp_path))
    with pytest.raises(OSError, match=r".+"):
        capture.seal(str(tmp_path), 0)
