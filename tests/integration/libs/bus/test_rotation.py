"""A password of the bus that changes while a service runs."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from libs.bus import BusSettings, connect_bus
from libs.events.subjects import event
from tests.harness import NatsServer, eventually


async def test_new_password_is_read_for_the_next_connection(server_directory: Path, tmp_path: Path) -> None:
    folder = server_directory / f"nats-{uuid4().hex[:8]}"
    file = tmp_path / "password"
    file.write_text("first\n")
    server = NatsServer(folder, extra_config="authorization {user: me, password: first}", dies_with_parent=True)
    server.start()
    settings = BusSettings(url=server.url, user="me", password_file=str(file), connect_timeout_s=10)
    try:
        async with connect_bus(settings) as bus:
            server.stop()
            await eventually(lambda: not bus.is_connected)
            file.write_text("second\n")
            secret = "authorization {user: me, password: second}"
            server = NatsServer(folder, port=server.port, extra_config=secret, dies_with_parent=True)
            server.start()
            await eventually(lambda: bus.is_connected)
            await bus.publish(event("trial", 1, "changed"), b"{}")
    finally:
        server.stop()
