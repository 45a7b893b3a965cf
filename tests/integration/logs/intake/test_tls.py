"""The intake over HTTPS, as what ships lines in a pod speaks to it, and over HTTP beside it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from deploy.operations.doctor.log_intake import about_name, check_log_intake
from deploy.operations.settings import LogIntakeSettings
from libs.bus import BusSettings
from libs.db.engine import Database
from services.launcher.files import intake_connection
from services.logs.main import main
from services.logs.settings import IntakeTlsSettings
from tests.harness import eventually
from tests.harness.certificates import Authority, Pair
from tests.integration.logs.conftest import Task, chunk, logs_settings, texts_of

NAME = "determined-master-service-rel.ml.svc.cluster.local"


@asynccontextmanager
async def serving(database_url: str, bus_settings: BusSettings, pair: Pair) -> AsyncIterator[tuple[int, int]]:
    """The service with a certificate; its ports of HTTP and of HTTPS."""
    settings = logs_settings(database_url, bus_settings)
    tls = IntakeTlsSettings(cert=str(pair.cert), key=str(pair.key), port=0)
    settings = msgspec.structs.replace(settings, intake=msgspec.structs.replace(settings.intake, tls=tls))
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    plain: asyncio.Future[int] = loop.create_future()
    encrypted: asyncio.Future[int] = loop.create_future()
    running = asyncio.create_task(
        main(settings, stop=stop, listening=plain.set_result, listening_tls=encrypted.set_result)
    )
    try:
        ports = await asyncio.wait_for(asyncio.gather(plain, encrypted), 60)
        yield ports[0], ports[1]
    finally:
        stop.set()
        await asyncio.wait_for(running, 60)


async def test_a_task_that_does_not_trust_the_certificate_is_named(
    db: Database, database_url: str, bus_settings: BusSettings, task: Task, tmp_path: Path
) -> None:
    pods = msgspec.json.encode([{"name": "pod-0", "addresses": ["127.0.0.1"]}]).decode()
    async with db.transaction() as connection:
        named = text("UPDATE allocations SET pods = CAST(:pods AS jsonb) WHERE allocation_id = :allocation")
        await connection.execute(named, {"pods": pods, "allocation": task.allocation})

    def shake(port: int) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            intake_connection.connect("127.0.0.1", port, 10, tls=True, ca_file="", server_name=NAME)

    pair = Authority().issue(tmp_path, names=(NAME,), addresses=())
    with capture_logs() as lines:
        async with serving(database_url, bus_settings, pair) as (_, port):
            await asyncio.to_thread(shake, port)
            line = await eventually(lambda: [each for each in lines if each["event"] == "handshake.failed"])
    assert line[0] | {"error": ""} == {
        "event": "handshake.failed",
        "log_level": "warning",
        "address": "127.0.0.1",
        "reason": "untrusted",
        "error": "",
        "allocation": task.allocation,
        "task": task.task,
    }


async def test_lines_come_over_https_by_the_name_of_the_api_and_over_http_beside_it(
    db: Database, database_url: str, bus_settings: BusSettings, task: Task, tmp_path: Path
) -> None:
    authority = Authority()
    pair = authority.issue(tmp_path, names=(NAME,), addresses=())
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem)
    async with serving(database_url, bus_settings, pair) as (port, tls_port):
        headers = task.headers(**{"content-type": "application/msgpack"})
        context = ssl.create_default_context(cafile=trusted)
        async with httpx.AsyncClient(verify=context, timeout=20) as client:
            answer = await client.post(
                f"https://127.0.0.1:{tls_port}/ingest/v1/logs",
                content=chunk([b"encrypted"]),
                headers=headers,
                extensions={"sni_hostname": NAME},
            )
            assert answer.is_success, answer.text
            # A task of before has the address of HTTP, and goes on.
            answer = await client.post(
                f"http://127.0.0.1:{port}/ingest/v1/logs", content=chunk([b"plain"], first=1), headers=headers
            )
            assert answer.is_success, answer.text

        async def stored() -> bool:
            return sorted(text.strip() for text in await texts_of(db, task)) == [b"encrypted", b"plain"]

        await eventually(stored)

        def shake(name: str) -> bytes | None:
            with intake_connection.connect(
                "127.0.0.1", tls_port, 10, tls=True, ca_file=str(trusted), server_name=name
            ) as connection:
                assert isinstance(connection, ssl.SSLSocket)
                return connection.getpeercert(binary_form=True)

        intake = LogIntakeSettings(url=f"https://127.0.0.1:{tls_port}", names=(NAME, "else"), ca_file=str(trusted))
        assert await check_log_intake(intake) == [about_name("else", [NAME])]
        before = await asyncio.to_thread(shake, NAME)
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(shake, "resolute-logs-rel.ml.svc.cluster.local")
        authority.issue(tmp_path, names=(NAME,), addresses=())

        async def renewed() -> bool:
            return await asyncio.to_thread(shake, NAME) != before

        await eventually(renewed)
