"""How every service begins and ends: one command line, one place where a wrong setting is explained, two signals."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from libs.errors import ResoluteError
from libs.service_log import LINES
from libs.settings import load
from libs.telemetry import TelemetrySettings, configure_logging, configure_tracing, end_tracing


class ServiceSettings(Protocol):
    @property
    def telemetry(self) -> TelemetrySettings: ...


_S = TypeVar("_S", bound=ServiceSettings)


def run_service(
    name: str,
    settings_type: type[_S],
    run: Callable[[_S], Awaitable[None]],
    *,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> int:
    """Read the settings, log as ``name``, run until ``run`` returns. The exit code: 1 after an explained failure.

    ``--settings FILE`` names a YAML file; ``RESOLUTE_...`` variables override it.

    loop_factory  makes the event loop; None takes asyncio's own
    """
    gc.freeze()  # modules and what they define are never garbage
    gc.enable()
    path = settings_file(name, sys.argv[1:])

    async def main(settings: _S) -> None:
        await run(settings)

    try:
        settings: _S = load(settings_type, path, os.environ)  # type: ignore[type-var]
        configure_logging(settings.telemetry, service=name)
        logging.getLogger().addHandler(LINES)
        configure_tracing(settings.telemetry, service=name)
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(main(settings))
    except ResoluteError as error:
        sys.stderr.write(f"resolute-{name}: {error}\n")
        return 1
    finally:
        end_tracing()
    return 0


def settings_file(name: str, arguments: Sequence[str]) -> Path | None:
    """What is said with ``--settings``. Ends the process with anything else that is said, and for help."""
    match arguments:
        case []:
            return None
        case ["--settings", file] if not file.startswith("-"):
            return Path(file)
    import argparse  # noqa: PLC0415  for people alone, who say something else

    parser = argparse.ArgumentParser(prog=f"resolute-{name}")
    parser.add_argument("--settings", type=Path, help="YAML file; RESOLUTE_... variables override it")
    said: Path | None = parser.parse_args(arguments).settings
    return said


async def until_signalled(main: Coroutine[Any, Any, None], *, ask: Callable[[], bool] = lambda: False) -> None:
    """Run ``main`` until it returns or SIGTERM or SIGINT ends it; raises what it raises.

    ask  asks ``main`` to come to an end by itself; False when it cannot be asked (yet), and is cancelled instead
    """
    running = asyncio.create_task(main, name="main")
    signalled = False

    def leave() -> None:
        nonlocal signalled
        signalled = True
        if not ask():
            running.cancel()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, leave)
    try:
        await running
    except asyncio.CancelledError:
        if not signalled:
            raise
