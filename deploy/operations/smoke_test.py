"""``resolute smoke-test``: runs a command through the whole system, and waits for what it prints and how it ends.

Whoever runs it has the credentials of the database and needs no password: a session of an administrator is made for it,
which is deleted at the end, and expires by itself where nobody is left to do so.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import ssl
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import delete, insert, select

from deploy.command_line import Commands, behind_the_command
from deploy.operations.settings import add_settings_argument, load_settings
from libs.clock import SystemClock
from libs.db.engine import Database, connect_database
from libs.db.outbox import announce
from libs.db.tables.users import user_sessions, users
from libs.errors import FailedPrecondition, Unavailable
from libs.events.changes import UserChanged
from libs.tokens import digest, new_token

if TYPE_CHECKING:
    import httpx

SUCCEEDED: Final = "allocation exited successfully"
"""What the api says of a command that ended with exit code 0."""
_EVERY_S: Final = 1.0
_ANSWERS_WITHIN_S: Final = 30.0
_CLEAN_UP_S: Final = 30.0


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser("smoke-test", description=__doc__, parents=[behind_the_command()])
    parser.add_argument("--master", required=True, help="address of the api, as in http://127.0.0.1:8080")
    parser.add_argument(
        "--certificate", type=Path, help="PEM file with the certificate of the api, whose name is not compared then"
    )
    parser.add_argument("--user", default="", help="who runs the command (default: an administrator)")
    parser.add_argument("--image", default="", help="image of the command (default: that of the cluster)")
    parser.add_argument("--pool", default="", help="resource pool (default: that of tasks without slots)")
    parser.add_argument(
        "--timeout", type=_seconds, default=600.0, help="seconds that all of it may take (default: %(default)g)"
    )
    add_settings_argument(parser)
    parser.set_defaults(run=_run)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 86_400:
        raise argparse.ArgumentTypeError("a number of seconds above 0, and below a day")
    return seconds


def _run(arguments: Namespace) -> int:
    asyncio.run(_smoke_test(arguments))
    return 0


async def _smoke_test(arguments: Namespace) -> None:
    import httpx  # noqa: PLC0415  (other subcommands work without it)

    settings = load_settings(arguments)
    trust = _trust(arguments.certificate)
    lifetime = timedelta(seconds=arguments.timeout + _CLEAN_UP_S)
    try:
        async with (
            connect_database(settings.database) as db,
            _session(db, arguments.user, lifetime) as (username, token),
            httpx.AsyncClient(
                base_url=arguments.master,
                headers={"Authorization": f"Bearer {token}"},
                timeout=_ANSWERS_WITHIN_S,
                verify=trust,
            ) as http,
        ):
            print(f"a command of {username} at {arguments.master}", flush=True)
            await _run_command(_Api(http), arguments)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise FailedPrecondition(f"--master {arguments.master} is no address: {error}") from error
    except httpx.HTTPError as error:
        raise Unavailable(f"{arguments.master} does not answer: {error or type(error).__name__}") from error


async def _run_command(api: _Api, arguments: Namespace) -> None:
    """Raises FailedPrecondition when the command fails, prints something else, or does not end in time."""
    said = f"smoke test {secrets.token_hex(8)}"
    config: dict[str, Any] = {"entrypoint": ["echo", said], "description": "smoke test", "resources": {"slots": 0}}
    if arguments.image:
        config["environment"] = {"image": arguments.image}
    if arguments.pool:
        config["resources"]["resource_pool"] = arguments.pool
    ident: str = (await api.call("POST", "/commands", {"config": config}))["command"]["id"]
    shown = ""
    try:
        async with asyncio.timeout(arguments.timeout):
            while True:
                command = (await api.call("GET", f"/commands/{ident}"))["command"]
                if command["state"] != shown:
                    shown = command["state"]
                    print(f"{ident}: {shown.removeprefix('STATE_').lower()}", flush=True)
                if shown == "STATE_TERMINATED":
                    break
                await asyncio.sleep(_EVERY_S)
            lines = await api.log(ident, follow=True)
    except TimeoutError as error:
        lines = await api.log(ident, follow=False)
        await api.call("POST", f"/commands/{ident}/kill")
        how = f"the command did not end within {arguments.timeout:g} s and was killed: it was {shown or 'not seen'}"
        raise FailedPrecondition(f"{how}\n{''.join(lines)}") from error
    except asyncio.CancelledError:
        await api.call("POST", f"/commands/{ident}/kill")
        raise
    print("".join(lines), end="")
    if command["exitStatus"] != SUCCEEDED:
        raise FailedPrecondition(f"the command failed: {command['exitStatus']}")
    if not any(said in line for line in lines):
        raise FailedPrecondition(f"the command ended, and its log lacks what it printed: {said!r}")
    print("the command ran, ended with 0, and its log has what it printed")


class _Api:
    """Calls of the REST interface, which are repeated where the api says that this helps."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """Raises FailedPrecondition with the words of a refusal."""
        while True:
            answer = await self._http.request(method, f"/api/v1{path}", json=body)
            if answer.status_code != 503:
                break
            await asyncio.sleep(_EVERY_S)
        if not answer.is_success:
            why = f"{answer.status_code}: {answer.text.strip()}"
            raise FailedPrecondition(f"{method} /api/v1{path} was refused with {why}")
        return answer.json()

    async def log(self, task_id: str, *, follow: bool) -> list[str]:
        """Lines of a task; with ``follow`` those too that are still to come."""
        answer = await self._http.get(
            f"/api/v1/tasks/{task_id}/logs", params={"follow": str(follow).lower(), "limit": "0"}, timeout=None
        )
        answer.raise_for_status()
        return [msgspec.json.decode(line)["result"]["message"] for line in answer.text.splitlines() if line]


@asynccontextmanager
async def _session(db: Database, username: str, lifetime: timedelta) -> AsyncIterator[tuple[str, str]]:
    """Name and token of a user, or of an administrator, logged in while the block runs."""
    who = users.c.username == username if username else users.c.admin
    query = select(users.c.id, users.c.username).where(who, users.c.active)
    token, now = new_token(), SystemClock().now()
    async with db.transaction() as tx:
        user = (await tx.execute(query.order_by(users.c.username != "admin", users.c.id).limit(1))).one_or_none()
        if user is None:
            named = f"there is no active user {username}" if username else "no administrator is active"
            raise FailedPrecondition(f"{named}: name another user with --user")
        opened = insert(user_sessions).values(
            user_id=user.id,
            token_hash=digest(token),
            token_type="LOGIN",  # noqa: S106
            created_at=now,
            expires_at=now + lifetime,
            description="resolute smoke-test",
        )
        await tx.execute(opened)
    try:
        yield user.username, token
    finally:
        async with db.transaction() as tx:
            await tx.execute(delete(user_sessions).where(user_sessions.c.token_hash == digest(token)))
            await announce(tx, UserChanged(user_id=user.id, what="sessions", username=user.username))


def _trust(certificate: Path | None) -> ssl.SSLContext:
    """Trust in what the system trusts; or in this very certificate, for whatever name it was made."""
    if certificate is None:
        return ssl.create_default_context()
    end = "-----END CERTIFICATE-----"
    first, found, _ = certificate.read_text().partition(end)
    if not found:
        raise FailedPrecondition(f"{certificate} has no certificate in PEM")
    context = ssl.create_default_context(cadata=first + end)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return context
