"""Reads which certificates tasks trust when they talk to the master, anew for each task that is launched.

Files change while a launcher runs: a Secret gets the certificate of another authority, or an administrator adds the
next authority before its certificate is served. Tasks that are launched then have to know of it, without a restart.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from libs.errors import InvalidRequest
from services.launcher.container.settings import NO_VERIFICATION, TaskSettings

log = structlog.get_logger()


class TaskTrust:
    """The certificates of the files that ``settings`` name, as they were when they could be read last."""

    def __init__(self, settings: TaskSettings) -> None:
        """Raises InvalidRequest, naming the setting, when a file cannot be read or holds no certificates."""
        self._settings = settings
        self._problem = ""
        self._latest = read_trust(settings)

    def read(self) -> bytes | None:
        """PEM for the next task, None when tasks get no certificates. Never fails: files that are not as they should
        be are logged once, and what they held before counts."""
        try:
            latest = read_trust(self._settings)
        except InvalidRequest as error:
            if str(error) != self._problem:
                self._problem = str(error)
                log.error("trust.not_read", reason=self._problem)
            return self._latest
        self._problem = ""
        if latest != self._latest:
            self._latest = latest
            log.info("trust.changed")
        return latest


def read_trust(settings: TaskSettings) -> bytes | None:
    """Certificates for tasks: of the authority where its file has some, else of the master, and additional ones.

    None when settings name no file, or ``noverify``. Raises InvalidRequest.
    """
    if not settings.has_trust or settings.master_cert_file == NO_VERIFICATION:
        return None
    own = _read_authority(settings)
    if own is None:
        own = _read("master_cert_file", settings.master_cert_file)
    return b"\n".join(part for part in (own, _read("additional_ca_file", settings.additional_ca_file)) if part)


def _read_authority(settings: TaskSettings) -> bytes | None:
    """None where a Secret has none: without the file, or with an empty one as cert-manager makes for public ones."""
    path = settings.master_ca_file
    if path is None or (settings.master_cert_file is not None and _is_blank(Path(path))):
        return None
    return _read("master_ca_file", path)


def _is_blank(path: Path) -> bool:
    try:
        return not path.read_bytes().strip()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # it is told to whoever reads it


def _read(setting: str, path: str | None) -> bytes:
    if path is None:
        return b""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"tasks.{setting} {path} cannot be read: {error.strerror}") from error
    try:
        # What is between certificates may be in any language.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=content.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise InvalidRequest(f"tasks.{setting} {path} holds no certificates in PEM format: {error}") from error
    return content
