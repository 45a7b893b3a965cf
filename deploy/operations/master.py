"""Calls of the REST interface for subcommands that anybody may use: the address and the login are those of ``det``."""

from __future__ import annotations

import getpass
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from libs.errors import FailedPrecondition, Unauthenticated, Unavailable

if TYPE_CHECKING:
    import httpx

_LOCAL: Final = "http://127.0.0.1:8080"
_ANSWERS_WITHIN_S: Final = 30.0
_NO_LOGIN: Final = 401
_FAILED: Final = 500
_TOO_HIGH: Final = 400
"""Statuses from here on are refusals."""


def add_master_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-m",
        "--master",
        default=os.environ.get("DET_MASTER") or _LOCAL,
        help="address of the api (default: $DET_MASTER, or %(default)s)",
    )
    parser.add_argument(
        "-u",
        "--user",
        default=os.environ.get("DET_USER", ""),
        help="who asks (default: $DET_USER); the password is"
        " $DET_PASS, or asked for; $DET_USER_TOKEN takes the place of both",
    )


@contextmanager
def calling(arguments: Namespace) -> Iterator[Master]:
    """Log in, and translate what goes wrong on the way. Raises FailedPrecondition, Unavailable."""
    import httpx  # noqa: PLC0415  (other subcommands work without it)

    address: str = arguments.master if "://" in arguments.master else f"http://{arguments.master}"
    try:
        with httpx.Client(base_url=address, timeout=_ANSWERS_WITHIN_S, verify=_trust()) as http:
            master = Master(http)
            master.log_in(arguments.user)
            yield master
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise FailedPrecondition(f"--master {address} is no address: {error}") from error
    except httpx.HTTPError as error:
        raise Unavailable(f"{address} does not answer: {error or type(error).__name__}") from error


class Master:
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def log_in(self, username: str) -> None:
        token = os.environ.get("DET_USER_TOKEN", "")
        if not token:
            token = self.call("POST", "/api/v1/auth/login", _credentials(username))["token"]
        self._http.headers["Authorization"] = f"Bearer {token}"

    def call(self, method: str, path: str, body: object = None, **query: str) -> Any:
        """The reply. Raises FailedPrecondition with the words of a refusal; Unauthenticated without a login, and
        Unavailable when the api cannot say now."""
        reply = self._http.request(method, path, json=body, params={k: v for k, v in query.items() if v})
        if reply.status_code == _NO_LOGIN:
            raise Unauthenticated(_refusal(reply))
        if reply.status_code >= _FAILED:
            raise Unavailable(_refusal(reply))
        if reply.status_code >= _TOO_HIGH:
            raise FailedPrecondition(_refusal(reply))
        return reply.json()


def _refusal(reply: httpx.Response) -> str:
    try:
        said: str = reply.json()["error"]["error"]
    except (ValueError, KeyError, TypeError):
        return f"{reply.request.url} refuses with status {reply.status_code}"
    return said


def _credentials(username: str) -> dict[str, str]:
    name = username or "determined"
    password = os.environ.get("DET_PASS")
    if password is None and sys.stdin.isatty():
        password = getpass.getpass(f"Password of {name}: ")
    return {"username": name, "password": password or ""}


def _trust() -> bool | str:
    """As ``det`` has it: a file of certificates, or ``noverify``."""
    certificates = os.environ.get("DET_MASTER_CERT_FILE", "")
    return False if certificates.lower() == "noverify" else certificates or True
