"""The log intake: whether what ships the lines of tasks can verify its certificate, by each name that it looks for."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from deploy.operations.doctor.findings import Finding, ok, problem, warning
from deploy.operations.settings import LogIntakeSettings

PART: Final = "log intake"
ANSWERS_WITHIN_S: Final = 5.0


async def check_log_intake(settings: LogIntakeSettings) -> list[Finding]:
    """Nothing where nobody says where it is."""
    if settings.url is None:
        return []
    url = urlsplit(settings.url)
    if url.scheme != "https" or url.hostname is None:
        says = "lines of tasks, and the token of each task with them, come over HTTP, while the api speaks HTTPS"
        return [warning(PART, says, remedy="set logs.tls: true (docs/tls.md); tasks that run go on over HTTP")]
    place = url.hostname, url.port or 443
    return await asyncio.to_thread(_look, place, settings)


def _look(place: tuple[str, int], settings: LogIntakeSettings) -> list[Finding]:
    where = f"{place[0]}:{place[1]}"
    try:
        has = _names_of(_certificate(place, settings, name=None))
        wrong = [name for name in settings.names or (place[0],) if not _is_named(place, settings, name)]
    except ssl.SSLCertVerificationError as error:
        says = f"tasks do not trust its certificate: {error.verify_message}"
        remedy = "ca.crt of the Secret that tlsSecret names has to be the authority that signed tls.crt (docs/tls.md)"
        return [problem(PART, says, remedy=remedy)]
    except (OSError, ValueError) as error:
        return [problem(PART, f"speaks no TLS at {where}: {error}", remedy="look at its pods and at what they log")]
    if not wrong:
        return [ok(PART, f"its certificate at {where} is valid for {', '.join(settings.names or (place[0],))}")]
    return [about_name(name, has) for name in wrong]


def about_name(name: str, has: list[str]) -> Finding:
    """The certificate is not valid for a name that tasks look for. Pure."""
    says = f"tasks look for {name} in its certificate, which is for {', '.join(has) or 'no name'}: their lines wait"
    remedy = f"issue the certificate of tlsSecret for {name}, too"
    if has:
        remedy += ", or give tls.certificateName a name that it has"
    return problem(PART, says, remedy=f"{remedy} (docs/tls.md)")


def _is_named(place: tuple[str, int], settings: LogIntakeSettings, name: str) -> bool:
    try:
        _certificate(place, settings, name=name)
    except ssl.SSLCertVerificationError:
        return False
    return True


def _certificate(place: tuple[str, int], settings: LogIntakeSettings, *, name: str | None) -> dict[str, Any]:
    """What is served there, once it is verified as tasks do; without a name it may be for any."""
    context = ssl.create_default_context()
    trusted = next((path for path in (settings.ca_file, settings.cert_file) if path and _has_content(path)), None)
    if trusted is not None:
        context.load_verify_locations(trusted)
    context.check_hostname = name is not None
    with (
        socket.create_connection(place, ANSWERS_WITHIN_S) as connection,
        context.wrap_socket(connection, server_hostname=name or place[0]) as encrypted,
    ):
        return dict(encrypted.getpeercert() or {})


def _has_content(path: str) -> bool:
    return Path(path).exists() and bool(Path(path).read_text().strip())


def _names_of(certificate: dict[str, Any]) -> list[str]:
    return [value for kind, value in certificate.get("subjectAltName", ()) if kind in ("DNS", "IP Address")]
