"""Lists of workloads that are too long to be in memory at once: read and sent page by page, as one message.

A client that asks for a million workloads, or for all of them, waits for the first of them only, and everybody else for
a page at a time. It gets what it would have got by asking for one page after the other.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse, accepts_gzip, encode_message
from services.api.queries.trials.workloads import is_by_step, list_workloads
from services.api.wire.base import Pagination
from services.api.wire.trials.metrics import GetWorkloadsQuery, GetWorkloadsResponse, Workload

LONG: Final = 5_000
"""Workloads; pages of clients have up to a thousand."""
PAGE: Final = 1_000
_ALL: Final = (0, -1)
_LEVEL: Final = 4
_WITH_HEADER_OF_GZIP: Final = 16 + zlib.MAX_WBITS


def is_long(call: Call[App, GetWorkloadsQuery, None]) -> bool:
    """Whether the reply may be long. By a metric all workloads are sorted, which is not done for each page anew."""
    limit = call.query.limit
    pretty = b"pretty" in call.request.scope["query_string"]
    return (limit in _ALL or limit > LONG) and is_by_step(call.query) and not pretty


async def send_by_pages(call: Call[App, GetWorkloadsQuery, None]) -> GetWorkloadsResponse | RawResponse:
    """The reply to a query that ``is_long``. Raises NotFound, InvalidRequest for a bad page."""
    first, pagination = await _page(call, call.query.offset, PAGE)
    start, end = pagination.start_index, pagination.total
    if call.query.limit > 0:
        end = min(end, start + call.query.limit)
    pagination = Pagination(
        offset=call.query.offset, limit=call.query.limit, start_index=start, end_index=end, total=pagination.total
    )
    if end - start <= PAGE:
        return GetWorkloadsResponse(workloads=first, pagination=pagination)
    headers = {"vary": "Accept-Encoding"}
    pieces = _pieces(call, first, pagination)
    if accepts_gzip(call.headers.get("accept-encoding", "")):
        headers["content-encoding"] = "gzip"
        pieces = _compressed(pieces)
    return RawResponse(pieces, media_type="application/json", headers=headers)


async def _page(call: Call[App, GetWorkloadsQuery, None], offset: int, limit: int) -> tuple[list[Workload], Pagination]:
    query = msgspec.structs.replace(call.query, offset=offset, limit=limit)
    async with call.app.db.read() as connection:
        return await list_workloads(connection, call.path_int("trialId"), query, call.app.landmarks)


async def _pieces(
    call: Call[App, GetWorkloadsQuery, None], first: list[Workload], pagination: Pagination
) -> AsyncIterator[bytes]:
    begin, brackets, end = encode_message(GetWorkloadsResponse(workloads=[], pagination=pagination)).partition(b"[]")
    yield begin + brackets[:1] + encode_message(first)[1:-1]
    position = pagination.start_index + len(first)
    while position < pagination.end_index:
        page, _ = await _page(call, position, min(PAGE, pagination.end_index - position))
        if not page:  # taken back meanwhile, as clients see it between two pages of theirs
            break
        yield b"," + encode_message(page)[1:-1]
        position += len(page)
    yield brackets[1:] + end


async def _compressed(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    coding = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WITH_HEADER_OF_GZIP)
    async for piece in pieces:
        if compressed := coding.compress(piece):
            yield compressed
    yield coding.flush()
