"""The unmodified ``det`` client, from an environment of its own."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from tests.harness.installed_client import det_path


class Ran(Struct, frozen=True):
    code: int
    out: str
    err: str


class Det:
    """Runs ``det`` commands one after the other, as user ``determined`` or whom the environment names."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def __call__(self, *arguments: str, code: int = 0) -> Ran:
        """Run a command; fails the test unless it ends with ``code``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments).encode() + b"\n")
        await self._process.stdin.drain()
        answer = await asyncio.wait_for(self._process.stdout.readline(), 180)
        ran = Ran(**json.loads(answer))
        assert ran.code == code, f"det {' '.join(arguments)}: {ran}"
        return ran


@asynccontextmanager
async def start_det(master: str, home: Path, **env: str) -> AsyncIterator[Det]:
    """The client with ``home`` for its settings and tokens."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("DET_")}
    process = await asyncio.create_subprocess_exec(
        str(det_path().with_name("python")),
        str(Path(__file__).with_name("det_driver.py")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**26,
        cwd=home,
        env={
            **inherited,
            "DET_MASTER": master,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "NO_COLOR": "1",
            **env,
        },
    )
    try:
        yield Det(process)
    finally:
        process.kill()
        await process.wait()
