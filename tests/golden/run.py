"""What the api of one checkout answers to every read, against that of another on the same rows.

``python -m tests.golden.run fill DUMP`` trains and keeps the database, ``record DUMP CHECKOUT ANSWERS`` keeps what the
api of a checkout answers on it, one JSON a line, and ``compare DUMP CHECKOUT ANSWERS`` prints where another one answers
otherwise, and fails if it does anywhere. A checkout needs its ``.venv`` (``make setup``); the reads are those of the
routes of the checkout that this runs in.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from tests.golden.answers import Answer, answers, ask
from tests.golden.differences import differences
from tests.golden.filling import fill
from tests.golden.parameters import values_in_paths
from tests.golden.reads import Read, gets
from tests.golden.searches import columns_of, posts
from tests.golden.versions import Version, running

ADMIN: Final = "admin"
OTHER: Final = "determined"
"""Who may not see everything; he is asked for a part of it."""
_OF_OTHER: Final = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("fill", _fill), ("record", _record), ("compare", _compare)):
        command = commands.add_parser(name)
        command.add_argument("dump", type=Path)
        if run is not _fill:
            command.add_argument("checkout", type=Path)
            command.add_argument("answers", type=Path)
        command.set_defaults(run=run)
    chosen = parser.parse_args()
    sys.exit(chosen.run(chosen))


def _fill(chosen: argparse.Namespace) -> int:
    fill(chosen.dump)
    return 0


def _record(chosen: argparse.Namespace) -> int:
    with _running(chosen) as version:
        found = list(_answers(version, _reads(version)))
    chosen.answers.write_bytes(b"\n".join(map(msgspec.json.encode, found)))
    print(f"{len(found)} answers")
    return 0


def _compare(chosen: argparse.Namespace) -> int:
    decode = msgspec.json.Decoder(Answer).decode
    before = [decode(line) for line in chosen.answers.read_bytes().split(b"\n")]
    with _running(chosen) as version:
        after = list(_answers(version, [answer.read for answer in before]))
    found = differences(before, after)
    print("\n".join([*found, f"{len(before)} answers, {len(found)} of them differ"]))
    return int(bool(found))


@contextmanager
def _running(chosen: argparse.Namespace) -> Iterator[Version]:
    # Not a folder that only its owner may enter: PostgreSQL does not run as root.
    with tempfile.TemporaryDirectory(prefix="resolute-golden-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with running(chosen.checkout.resolve(), chosen.dump.resolve(), Path(folder)) as version:
            yield version


def _reads(version: Version) -> list[Read]:
    values = asyncio.run(values_in_paths(version.database_url))
    token = version.token(ADMIN)
    columns = columns_of(1, lambda path: ask(version.url, token, path))
    reads = [*gets(values), *posts(columns, values["experiments"])]
    return [*reads, *(msgspec.structs.replace(read, caller=OTHER) for read in reads[::_OF_OTHER])]


def _answers(version: Version, reads: Sequence[Read]) -> Iterator[Answer]:
    began = datetime.now(UTC)
    tokens = {caller: version.token(caller) for caller in (ADMIN, OTHER)}
    return answers(version.url, tokens, reads, began)


if __name__ == "__main__":
    main()
