"""A client that costs next to nothing: prepared bytes over kept-alive connections, so that the server is measured."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit


class RawConnection:
    """One HTTP/1.1 connection that sends requests one after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        self._reader, self._writer, self._head = reader, writer, head

    @classmethod
    async def open(cls, url: str, headers: dict[str, str]) -> RawConnection:
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        lines = [f"Host: {parts.netloc}", *(f"{name}: {value}" for name, value in headers.items())]
        return cls(reader, writer, "\r\n".join(lines).encode())

    async def post(self, path: str, body: bytes) -> bytes:
        """The body of the answer. Raises RuntimeError unless it is 200."""
        head = b"POST %b HTTP/1.1\r\n%b\r\nContent-Length: %d\r\n\r\n" % (path.encode(), self._head, len(body))
        self._writer.write(head + body)
        status = await self._reader.readline()
        length = 0
        while (line := await self._reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        answer = await self._reader.readexactly(length)
        if b" 200 " not in status:
            raise RuntimeError(f"{status!r} {answer!r}")
        return answer

    def close(self) -> None:
        self._writer.close()
