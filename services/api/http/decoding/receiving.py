"""Receives the body of a request, within a bound for its size and one for the memory of all large ones."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Receive

from libs.errors import InvalidRequest
from services.api.http.connection import ClientGone
from services.api.http.decoding.upload_memory import UploadReservation


async def read_body(
    receive: Receive, headers: Mapping[str, str], *, limit: int, reservation: UploadReservation
) -> bytes:
    """The whole body of a request, which is never held beyond ``limit`` bytes.

    Raises InvalidRequest for a longer one (at once, when its length is announced), Unavailable when there is no memory
    for it now, ClientGone for one that breaks off.
    """
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and int(announced[:20]) > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        reservation.grow(size)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limit: int) -> InvalidRequest:
    return InvalidRequest(f"the request body is larger than {limit} bytes")
