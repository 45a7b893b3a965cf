"""Where frames of a websocket begin, however their bytes are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from services.api.proxy.tunnels.frame_borders import FrameBorders

SIZES = st.sampled_from([0, 1, 125, 126, 300, 65_535, 65_536])
FRAMES = st.lists(
    st.tuples(st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.CONT, Opcode.PONG]), SIZES, st.booleans()),
    min_size=1,
    max_size=5,
)


@given(FRAMES, st.lists(st.integers(min_value=1, max_value=70_000), min_size=1, max_size=8))
def test_a_frame_goes_in_between_frames_only(frames: list[tuple[Opcode, int, bool]], steps: list[int]) -> None:
    written, borders = b"", {0}
    for opcode, size, is_masked in frames:
        content = b"\x81" * (min(size, 125) if opcode is Opcode.PONG else size)
        written += Frame(opcode, content).serialize(mask=is_masked)
        borders.add(len(written))
    follows = FrameBorders()
    at = turn = 0
    while at < len(written):
        step = min(steps[turn % len(steps)], len(written) - at)
        follows.feed(written[at : at + step])
        at, turn = at + step, turn + 1
        if turn > 200:  # the rest at once: single bytes of large frames prove nothing new
            follows.feed(written[at:])
            at = len(written)
        assert follows.may_insert == (at in borders)


def test_nothing_goes_behind_a_close() -> None:
    follows = FrameBorders()
    follows.feed(Frame(Opcode.CLOSE, b"").serialize(mask=False))
    assert not follows.may_insert
