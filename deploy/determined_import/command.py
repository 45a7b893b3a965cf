"""``resolute import``: brings everything from a Determined 0.38 installation into a new, empty one.

The old database is only read. When an import is cut off, the same command goes on where it was. When it was complete,
the same command brings what was added and changed there since, and leaves alone what was changed here.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from deploy.command_line import Commands, behind_the_command
from deploy.determined_import.dump import restore_dump
from deploy.determined_import.importing import run_import
from deploy.determined_import.refusal import ImportRefused
from deploy.determined_import.report import ImportReport, as_text
from deploy.operations.settings import add_settings_argument, load_settings
from libs.db.connecting.settings import address

SOURCE_VARIABLE: Final = "RESOLUTE_IMPORT_SOURCE"
DISAGREES: Final = 2
DIFFERS: Final = 3


def add_parser(commands: Commands) -> None:
    """Add the subcommand to the parsers of ``resolute``."""
    parser = commands.add_parser(
        "import",
        description=__doc__,
        parents=[behind_the_command()],
        epilog=f"exit code: 0 when both sides agree, {DISAGREES} when they do not,"
        f" {DIFFERS} when rows were left as they are here because both sides have changed, 1 when the import could not"
        " be done",
    )
    parser.add_argument(
        "--source",
        metavar="URL",
        default=os.environ.get(SOURCE_VARIABLE),
        help="the old database, postgresql://user@host:port/name; the password may also be in PGPASSWORD or ~/.pgpass"
        f" (default: ${SOURCE_VARIABLE})",
    )
    parser.add_argument(
        "--dump", metavar="FILE", type=Path, help="restore this dump of pg_dump into --source, an empty database, first"
    )
    parser.add_argument("--logs", action="store_true", help="import the log lines of tasks too")
    parser.add_argument("--json", action="store_true", help="print the report for programs")
    add_settings_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Import, print the report, and return the exit code. Raises ImportRefused."""
    report = asyncio.run(_import(arguments, target_url=address(load_settings(arguments).database)))
    if arguments.json:
        document = {**msgspec.to_builtins(report, str_keys=True), "agrees": report.agrees, "differs": report.differs}
        print(msgspec.json.encode(document).decode())
    else:
        print(as_text(report), end="")
    if not report.agrees:
        return DISAGREES
    return DIFFERS if report.differs else 0


async def _import(arguments: argparse.Namespace, *, target_url: str) -> ImportReport:
    if not arguments.source:
        raise ImportRefused(f"name the old database with --source or ${SOURCE_VARIABLE}")
    if arguments.dump is not None:
        await restore_dump(arguments.dump, arguments.source)
    return await run_import(
        source_url=arguments.source,
        target_url=target_url,
        with_logs=arguments.logs,
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
