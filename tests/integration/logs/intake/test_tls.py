"""The intake over HTTPS, as what ships lines in a pod speaks to it, and over HTTP beside it."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import httpx
import msgspec
import pytest

from libs.bus import BusSettings
from libs.db.engine import Database
from services.launcher.files import intake_connection
from services.logs.main import main
from services.logs.settings import IntakeTlsSettings
from tests.harness import eventually
from tests.harness.certificates import Authority
from tests.integration.logs.conftest import Task, chunk, logs_settings, texts_of

NAME = "determined-master-service-rel.ml.svc.cluster.local"


async def test_lines_come_over_https_by_the_name_of_the_api_and_over_http_beside_it(
    db: Database, database_url: str, bus_settings: BusSettings, task: Task, tmp_path: Path
) -> None:
    authority = Authority()
    pair = authority.issue(tmp_path, names=(NAME,), addresses=())
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(authority.pem)
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
        port, tls_port = await asyncio.wait_for(asyncio.gather(plain, encrypted), 60)
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

        before = await asyncio.to_thread(shake, NAME)
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(shake, "resolute-logs-rel.ml.svc.cluster.local")
        authority.issue(tmp_path, names=(NAME,), addresses=())

        async def renewed() -> bool:
            return await asyncio.to_thread(shake, NAME) != before

        await eventually(renewed)
    finally:
        stop.set()
        await asyncio.wait_for(running, 60)
