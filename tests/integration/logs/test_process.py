"""The service as operators run it: settings from the environment, an end with SIGTERM."""

from __future__ import annotations

from pathlib import Path

import httpx
import msgspec
from sqlalchemy import text

from libs.bus import BusSettings
from libs.db.engine import Database
from tests.harness import ServiceProcess, eventually
from tests.integration.logs.conftest import Task, chunk, post, texts_of


async def test_it_starts_takes_lines_and_leaves_in_good_order(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task, tmp_path: Path
) -> None:
    process = ServiceProcess(
        "services.logs.main",
        log_path=tmp_path / "log",
        env={
            "RESOLUTE_DATABASE__URL": database_url,
            "RESOLUTE_BUS__URL": bus_settings.url,
            "RESOLUTE_INTAKE__HOST": "127.0.0.1",
            "RESOLUTE_INTAKE__PORT": "0",
            "RESOLUTE_WRITER__NAME": "process",
        },
    )

    def listening() -> int | None:
        events = [msgspec.json.decode(line) for line in process.log().splitlines() if line.startswith("{")]
        return next((event["port"] for event in events if event["event"] == "http.listening"), None)

    with process:
        port = await eventually(listening, what="listening")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            assert await post(client, task, chunk([b"x"])) == 200

        async def stored() -> bool:
            return await texts_of(db, task) == [b"x\n"]

        await eventually(stored)
        assert process.stop() == 0, process.log()
    async with db.read() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM log_writers")) == 0
