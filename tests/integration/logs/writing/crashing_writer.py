"""A logs service that dies of SIGKILL after its first transaction has committed, before the bus hears of it.

Run it with ``python -m``, and with the URLs of the database and the bus and with where it dies: ``copy`` is before that
commit, with the lines copied.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any, NoReturn

from libs.bus import BusSettings
from libs.db.connecting.settings import DatabaseSettings
from services.logs.main import main
from services.logs.settings import IntakeSettings, LogsSettings, WriterSettings
from services.logs.writing import store as store_module
from services.logs.writing import writer as writer_module


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


store, copy = store_module.store, store_module._copy


async def store_and_die(db: Any, shard: int, batches: Any, **more: Any) -> Any:
    stored = await store(db, shard, batches, **more)
    if batches:  # what waits in the streams of other tests is looked at, too
        die()
    return stored


async def copy_and_die(*arguments: Any, **more: Any) -> NoReturn:
    await copy(*arguments, **more)
    die()


if __name__ == "__main__":
    _, database_url, bus_url, where = sys.argv
    if where == "commit":
        writer_module.store = store_and_die
    else:
        store_module._copy = copy_and_die
    settings = LogsSettings(
        database=DatabaseSettings(url=database_url),
        bus=BusSettings(url=bus_url),
        intake=IntakeSettings(host="127.0.0.1", port=0),
        writer=WriterSettings(name="crashing", heartbeat_s=0.3),
    )
    asyncio.run(main(settings, stop=asyncio.Event()))
