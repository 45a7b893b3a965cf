"""The service as operators run it: settings from the environment, an end with SIGTERM."""

from __future__ import annotations

from pathlib import Path

import httpx
import msgspec
from sqlalchemy import text

from libs.bus import BusSettings
from libs.db.engine import Database
from tests.harness import eventually
from tests.integration.logs.conftest import Task, chunk, post, service_process, texts_of


async def test_it_starts_takes_lines_and_leaves_in_good_order(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task, tmp_path: Path
) -> None:
    process = service_process(database_url, bus_settings, log_path=tmp_path / "log", writer="process")

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
