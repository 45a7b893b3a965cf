"""Nothing that is written is lost, doubled or out of order, whatever else happens to the connection."""

from __future__ import annotations

import asyncio

from libs.serving.write_coalescing import HELD_BYTES, CoalescingTransport


class Wire(asyncio.Transport):
    """The transport below, which notes what reaches it."""

    def __init__(self) -> None:
        super().__init__()
        self.packets: list[bytes] = []
        self.ended = ""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended
        self.packets.append(bytes(data))

    def close(self) -> None:
        self.ended = "closed"

    def abort(self) -> None:
        self.ended = "aborted"

    def is_closing(self) -> bool:
        return bool(self.ended)


async def coalescing() -> tuple[Wire, CoalescingTransport]:
    wire = Wire()
    return wire, CoalescingTransport(wire, asyncio.get_running_loop())


async def next_round() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_what_one_round_writes_goes_out_together() -> None:
    wire, transport = await coalescing()
    transport.write(b"head ")
    transport.write(bytearray(b"body"))
    assert wire.packets == []
    await next_round()
    transport.write(b"next")
    await next_round()
    assert wire.packets == [b"head body", b"next"]


async def test_a_written_buffer_may_be_used_again() -> None:
    wire, transport = await coalescing()
    buffer = bytearray(b"first")
    transport.write(buffer)
    buffer[:] = b"other"
    await next_round()
    assert wire.packets == [b"first"]


async def test_much_is_not_held() -> None:
    wire, transport = await coalescing()
    transport.write(b"head")
    transport.write(b"x" * HELD_BYTES)
    assert wire.packets == [b"head" + b"x" * HELD_BYTES]
    transport.write(b"tail")
    await next_round()
    assert wire.packets[1:] == [b"tail"]


async def test_closing_sends_what_was_written_and_aborting_does_not() -> None:
    wire, transport = await coalescing()
    transport.write(b"last words")
    transport.close()
    assert (wire.packets, wire.ended) == ([b"last words"], "closed")
    wire, transport = await coalescing()
    transport.write(b"unsaid")
    transport.abort()
    await next_round()
    assert (wire.packets, wire.ended) == ([], "aborted")


async def test_what_is_written_to_a_connection_that_has_gone_is_dropped() -> None:
    wire, transport = await coalescing()
    transport.write(b"too late")
    wire.close()
    await next_round()
    assert wire.packets == []


async def test_the_bare_transport_comes_after_what_was_written() -> None:
    wire, transport = await coalescing()
    transport.write(b"before ")
    transport.bare().write(b"after")
    await next_round()
    assert wire.packets == [b"before ", b"after"]
