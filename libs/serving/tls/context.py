"""Makes the TLS context of a server: versions, certificate and key, with the file named that is not right."""

from __future__ import annotations

import ssl
from pathlib import Path

from libs.errors import InvalidRequest


def tls_context(*, cert: Path, key: Path) -> ssl.SSLContext:
    """What a server needs to be spoken to over TLS 1.2 or newer.

    cert  PEM file with the certificate, followed by those that lead to a known authority
    key   PEM file with its private key, without a passphrase
    Raises InvalidRequest that says which file is not as it should be.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    for path in (cert, key):
        try:
            path.read_bytes()
        except OSError as error:
            raise InvalidRequest(f"security.tls: {path} cannot be read: {error.strerror}") from error
    try:
        # Without a password somebody at the terminal would be asked for it, and nobody is there.
        context.load_cert_chain(cert, key, password=lambda: "none")
    except ssl.SSLError as error:
        raise InvalidRequest(f"security.tls: {cert} and {key} are not a certificate and its key: {error}") from error
    return context
