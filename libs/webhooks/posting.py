"""Sends requests to receivers of webhooks, and only to addresses that webhooks may lead to.

Addresses are looked at where the socket is made, after the name was resolved: what was checked is what is connected to,
for redirects as for the URL itself.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email import utils
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from libs.outbound.addresses import Network, is_allowed
from libs.webhooks.addresses import problem_of_url

if TYPE_CHECKING:
    import aiohttp

MOST_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset({307, 308})
"""Those that keep method and body; after others the event would be lost in a GET."""
_PASSING: Final = frozenset({408, 425, 429})
"""Of 4xx, those that say that the same request may succeed later (RFC 9110, RFC 6585)."""
_READ_BYTES: Final = 64 * 1024
"""Of an answer, so that the connection can be used again; longer ones close it."""
_CONNECT_S: Final = 5.0


class DeliveryFailed(Exception):
    """The receiver did not take the event. ``is_final`` says that it never will."""

    def __init__(self, reason: str, *, is_final: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.is_final = is_final
        self.retry_after_s = retry_after_s


class AddressRefused(OSError):
    """A webhook leads to an address that is not public."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address} is a private address; an administrator can allow it with webhooks.allowed_networks"
        )


class Poster:
    """The connections to receivers of one process."""

    def __init__(self, session: aiohttp.ClientSession, *, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Returns when the receiver has taken the request. Raises DeliveryFailed."""
        import aiohttp  # noqa: PLC0415

        try:
            async with asyncio.timeout(self._timeout_s):
                await self._follow(url, body, headers)
        except TimeoutError as error:
            raise DeliveryFailed(f"no answer within {self._timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise DeliveryFailed(_reason(error)) from error
        except ValueError as error:  # of a URL that only now turns out to be none
            raise DeliveryFailed(f"not a URL: {error}", is_final=True) from error

    async def _follow(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        for _ in range(MOST_REDIRECTS + 1):
            location = await self._post_once(url, body, headers)
            if location is None:
                return
            url = urljoin(url, location)
            if problem_of_url(url) is not None:
                raise DeliveryFailed("redirected to what is no URL", is_final=True)
        raise DeliveryFailed(f"more than {MOST_REDIRECTS} redirects")

    async def _post_once(self, url: str, body: bytes, headers: Mapping[str, str]) -> str | None:
        """Where the receiver sends us; None when it has taken the event."""
        async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
            await response.content.read(_READ_BYTES)
            status = response.status
            if 200 <= status < 300:
                return None
            if status in _REDIRECTS and (location := response.headers.get("Location")):
                return location
            is_final = 300 <= status < 500 and status not in _PASSING
            raise DeliveryFailed(
                f"answered {status}", is_final=is_final, retry_after_s=_seconds(response.headers.get("Retry-After"))
            )


def _seconds(retry_after: str | None) -> float | None:
    """RFC 9110 10.2.3; None for what cannot be read."""
    if retry_after is None:
        return None
    try:
        if retry_after.strip().isdigit():
            return float(retry_after)
        return max(0.0, (utils.parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _reason(error: Exception) -> str:
    import aiohttp  # noqa: PLC0415

    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return str(cause) or type(error).__name__


@asynccontextmanager
async def open_poster(*, allowed: Sequence[Network], timeout_s: float) -> AsyncIterator[Poster]:
    """Connections for the duration of the block.

    allowed    networks that are not public, and that requests may go to nevertheless
    timeout_s  for a whole request with its redirects
    """
    # Nine megabytes, which a service that has nobody to tell need not hold.
    import aiohttp  # noqa: PLC0415

    def connectable(found: Any) -> socket.socket:
        family, kind, protocol, _, address = found
        if not is_allowed(str(address[0]), allowed):
            raise AddressRefused(str(address[0]))
        return socket.socket(family=family, type=kind, proto=protocol)

    connector = aiohttp.TCPConnector(limit=0, socket_factory=connectable)
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        headers={"User-Agent": "resolute-webhooks"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(_CONNECT_S, timeout_s)),
    ) as session:
        yield Poster(session, timeout_s=timeout_s)
