"""Serves a renewed certificate without a restart: reads the files again and again, for connections that begin.

Connections that exist keep the certificate that they began with. A Secret that Kubernetes mounts changes by one
symbolic link, so that certificate and key change at once; where they are written one after the other, they do not
belong together for a moment, and the pair before them is served meanwhile.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Final

import structlog

from libs.errors import InvalidRequest
from libs.serving.tls.context import tls_context
from libs.telemetry import counter

log = structlog.get_logger()

LOOK_S: Final = 2.0
"""How often the files are read. Their dates say little: each mount of a Secret makes them anew."""

RENEWALS = counter(
    "resolute_tls_renewals_total",
    "Changes of the files of a server's certificate, by result: served, or refused because certificate and key cannot "
    "be read or do not belong together",
    "result",
)


class ServerCertificate:
    """The certificate and key of a server, as their files hold them now."""

    def __init__(self, *, cert: Path, key: Path) -> None:
        """Takes and raises what ``tls_context`` does."""
        self._cert, self._key = cert, key
        self._seen = self._contents()
        self._problem = ""
        self.context: Final = tls_context(cert=cert, key=key)
        """For the server, as long as it runs."""
        self._current = self.context
        self.context.sni_callback = self._begin

    def look(self) -> None:
        """Serve what the files hold now to connections that begin from here on. Files that cannot be served are
        logged once, and leave everything as it is."""
        contents = self._contents()
        if contents == self._seen:
            return
        # Read before they are loaded: what changes in between is seen the next time.
        self._seen = contents
        try:
            self._current = tls_context(cert=self._cert, key=self._key)
        except InvalidRequest as error:
            if str(error) != self._problem:
                self._problem = str(error)
                RENEWALS.labels("refused").inc()
                log.error("certificate.not_renewed", reason=self._problem)
            return
        self._problem = ""
        RENEWALS.labels("served").inc()
        log.info("certificate.renewed", certificate=str(self._cert))

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    def _begin(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Called by OpenSSL in each handshake, whether the client names a server or not."""
        connection.context = self._current

    def _contents(self) -> tuple[bytes | None, bytes | None]:
        return _read(self._cert), _read(self._key)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None  # whoever loads it says so
