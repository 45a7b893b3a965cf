"""Where the frames of a websocket begin, in bytes that pass by: only there may a frame of our own go in between.

Source: RFC 6455 5.2 (heads of frames), 5.4 (control frames may stand between the parts of a message).
"""

from __future__ import annotations

from typing import Final

_OPCODE: Final = 0x0F
_CLOSE: Final = 0x8
_MASKED: Final = 0x80
_LENGTH: Final = 0x7F
_LENGTH_BYTES: Final = {126: 2, 127: 8}


class FrameBorders:
    """Follows one direction of a connection from its first frame on, whose contents it never looks at."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._left = 0
        self._has_closed = False

    @property
    def may_insert(self) -> bool:
        """Whether everything so far is whole frames, and none of them says that the connection ends."""
        return not self._head and not self._left and not self._has_closed

    def feed(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
            else:
                step = _head_bytes(self._head) - len(self._head)
                self._head += data[at : at + step]
                if len(self._head) > 1 and len(self._head) == _head_bytes(self._head):
                    self._begin_frame()
            at += step

    def _begin_frame(self) -> None:
        head = self._head
        length = head[1] & _LENGTH
        extended = _LENGTH_BYTES.get(length, 0)
        self._left = int.from_bytes(head[2 : 2 + extended]) if extended else length
        self._has_closed = self._has_closed or head[0] & _OPCODE == _CLOSE
        head.clear()


def _head_bytes(head: bytearray) -> int:
    """The size of the head that begins so, as far as it is known."""
    if len(head) < 2:
        return 2
    return 2 + _LENGTH_BYTES.get(head[1] & _LENGTH, 0) + (4 if head[1] & _MASKED else 0)
