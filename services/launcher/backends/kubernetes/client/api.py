"""Requests to the API server, with objects as plain JSON: generated models would cost time and memory for nothing.

The server is treated as it asks to be: a bounded number of requests at once, and after 429 (or 503 with Retry-After)
nobody asks anything until the time it named has passed. Source:
https://kubernetes.io/docs/reference/using-api/api-concepts/; docs/reference/kubernetes.md 9.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
import structlog
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration

from libs.errors import ResoluteError, Unavailable
from libs.telemetry import counter
from services.launcher.backends.kubernetes.client.objects import Status

log = structlog.get_logger()

T = TypeVar("T")
Json = dict[str, Any]

REQUESTS: Final = counter("resolute_launcher_kubernetes_requests_total", "Requests to the API server", "verb", "status")

MERGE_PATCH: Final = "application/merge-patch+json"
ONLY_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

_MAX_PATIENCE: Final = 6
"""Attempts while the server says that it has too much to do."""
_LONGEST_PAUSE_S: Final = 60.0
_RETIREMENT_S: Final = 900.0
"""Longer than any watch lasts."""
_SILENCE_S: Final = 100.0
"""The server sends a bookmark every minute; a watch that says nothing for longer may be a connection that is dead."""


class Refused(ResoluteError):
    """The API server understood, and will not do it; the message is its own."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message or reason or f"the Kubernetes API server answered {code}")
        self.code = code
        self.reason = reason


class KubeApi:
    """One connection pool to one API server.

    credentials  reads them anew; called when the server does not accept those there are any more
    may_act      whether this client may change anything; without it, it only reads
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        credentials: Callable[[], Awaitable[Configuration]],
        max_requests: int,
        timeout_s: float,
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._under_way = asyncio.Semaphore(max_requests)
        self._resume_at = 0.0
        self._client = self._connect(configuration)
        self._retired: dict[ApiClient, float] = {}
        """Clients with older credentials, and since when they are not used any more."""
        self._renewing = asyncio.Lock()
        self._may_act = may_act
        self._generation = 0

    @property
    def host(self) -> str:
        return str(self._client.configuration.host)

    async def close(self) -> None:
        for client in (self._client, *self._retired):
            await client.close()  # type: ignore[no-untyped-call]

    async def get(self, path: str, kind: type[T], query: Mapping[str, str] | None = None, *, accept: str = "") -> T:
        return msgspec.json.decode(await self.request("GET", path, query=query, accept=accept), type=kind)

    async def get_text(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        return await self.request("GET", path, query=query, accept="*/*")

    async def create(self, path: str, body: Json, kind: type[T]) -> T:
        return msgspec.json.decode(await self.request("POST", path, body=body), type=kind)

    async def patch(self, path: str, body: Json) -> None:
        await self.request("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def delete(self, path: str, body: Json | None = None) -> bool:
        """Delete an object; False when there was none."""
        try:
            await self.request("DELETE", path, body=body)
        except Refused as error:
            if error.code == 404:
                return False
            raise
        return True

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = "application/json",
        accept: str = "",
    ) -> bytes:
        """The body of the answer. Raises Refused, and Unavailable when there is no answer or no time for us."""
        headers = {"Content-Type": content_type, "Accept": accept or "application/json"}
        for attempt in range(_MAX_PATIENCE):
            async with self._under_way:
                await self._wait_for_turn()
                if method != "GET" and not self._may_act():
                    raise Unavailable("this launcher does not act for its pool any more")
                generation = self._generation
                try:
                    status, retry_after, answer = await self._send(method, path, query, body, headers)
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    REQUESTS.labels(method, "lost").inc()
                    raise Unavailable(f"the Kubernetes API server does not answer: {error!r}") from error
                REQUESTS.labels(method, str(status)).inc()
            if status < 400:
                return answer
            if status == 429 or (status == 503 and retry_after is not None):
                self._pause(retry_after, attempt)
            elif status == 401 and generation == self._generation and attempt == 0:
                await self._renew(generation)
            elif status != 401 or attempt:
                raise _failure(status, answer)
        raise Unavailable("the Kubernetes API server has too much to do")

    @asynccontextmanager
    async def watch(
        self, path: str, query: Mapping[str, str], *, timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Lines of a watch, as long as the server sends them. Watches do not count as requests under way.

        Raises Refused when it does not begin, Unavailable when the connection is lost.
        """
        await self._wait_for_turn()
        query = {**query, "watch": "1", "timeoutSeconds": str(int(timeout_s))}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout_s, sock_read=_SILENCE_S)
        try:
            headers = {"Accept": "application/json"}
            response = await self._open("GET", path, query=query, body=None, headers=headers, timeout=timeout)
            try:
                if response.status >= 400:
                    answer = await response.read()
                    if response.status == 429:
                        self._pause(response.headers.get("Retry-After"), 0)
                    if response.status == 401:
                        await self._renew(self._generation)
                    raise _failure(response.status, answer)
                yield _lines(response)
            finally:
                response.close()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise Unavailable(f"a watch of the Kubernetes API server broke off: {error!r}") from error

    async def _send(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Json | None, headers: dict[str, str]
    ) -> tuple[int, str | None, bytes]:
        timeout = aiohttp.ClientTimeout(total=self._timeout_s)
        response = await self._open(method, path, query=query, body=body, headers=headers, timeout=timeout)
        async with response:
            return response.status, response.headers.get("Retry-After"), await response.read()

    async def _open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: Json | None,
        headers: dict[str, str],
        timeout: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        client = self._client
        _, url, prepared, content, _ = await client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=headers,
            body=None,
            auth_settings=["BearerToken"],
        )
        answer = await client.rest_client.request(  # type: ignore[no-untyped-call]
            method, url, headers=prepared, body=body if body is not None else content, _request_timeout=timeout
        )
        response: aiohttp.ClientResponse = answer.response
        return response

    async def _wait_for_turn(self) -> None:
        loop = asyncio.get_running_loop()
        while (left := self._resume_at - loop.time()) > 0:  # noqa: ASYNC110  time is all there is to wait for
            await asyncio.sleep(left + random.random() * 0.1)  # noqa: S311  jitter

    def _pause(self, retry_after: str | None, attempt: int) -> None:
        """Nobody asks anything for as long as the server says, or for a while that grows with every refusal."""
        named = float(retry_after) if retry_after and retry_after.isdigit() else 0.0
        pause_s = min(named or 0.5 * 2**attempt, _LONGEST_PAUSE_S)
        self._resume_at = max(self._resume_at, asyncio.get_running_loop().time() + pause_s)
        log.warning("kubernetes.too_many_requests", pause_s=pause_s)

    async def _renew(self, generation: int) -> None:
        """Read the credentials again, unless somebody just did: tokens and certificates are replaced now and then."""
        async with self._renewing:
            if generation != self._generation:
                return
            replaced, self._client = self._client, self._connect(await self._credentials())
            self._generation += 1
            log.info("kubernetes.credentials_renewed")
            # Watches that go on over the old connections would not notice if those were closed.
            now = asyncio.get_running_loop().time()
            for client, since in list(self._retired.items()):
                if now > since + _RETIREMENT_S:
                    del self._retired[client]
                    await client.close()  # type: ignore[no-untyped-call]
            self._retired[replaced] = now

    def _connect(self, configuration: Configuration) -> ApiClient:
        # No limit: requests are counted here, and watches, of which each namespace has a few, must not wait for them.
        configuration.connection_pool_maxsize = 0
        client = ApiClient(configuration)
        client.user_agent = "resolute-launcher"
        return client


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for line in response.content:
        if line.strip():
            yield line


def _failure(status: int, answer: bytes) -> ResoluteError:
    try:
        said = msgspec.json.decode(answer, type=Status)
    except msgspec.DecodeError:
        said = Status(message=answer[:500].decode("utf-8", "replace").strip())
    if status >= 500 or status in (408, 429):
        return Unavailable(f"the Kubernetes API server answered {status}: {said.message or said.reason}")
    return Refused(status, said.reason, said.message)
