"""Words that every subcommand of ``resolute`` understands alike, and where a system on one machine is by default."""

from __future__ import annotations

import argparse
import errno
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

DEFAULT_STATE: Final = ".resolute"
STATE_VARIABLE: Final = "RESOLUTE_STATE"

_AGO: Final = re.compile(r"([0-9]{1,5})([smhd])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What the module of a subcommand adds its parser to."""


def state_folder(state: str | None) -> Path:
    """The folder that was named, by the environment if not on the command line; it need not exist."""
    return Path(state or os.environ.get(STATE_VARIABLE) or DEFAULT_STATE).resolve()


def in_words(error: OSError) -> str:
    """What the system refused, in a sentence that says what to do."""
    if error.filename is None:
        if isinstance(error, ConnectionError):
            says = f"the server that is needed does not answer: {error}"
            return f"{says}; start that of this machine with `resolute up`, or see that it runs"
        return str(error)
    says = f"{error.filename}: {error.strerror}"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{says}; run this as somebody who may, or name another folder with --state"
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        return f"{says}; remove what is in the way, or name another folder with --state"
    return says


def past_moment(text: str) -> datetime:
    """A point in time for an argument: so long ago, as in ``10m``, or ISO 8601; in UTC."""
    if (ago := _AGO.fullmatch(text)) is not None:
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        return datetime.fromisoformat(text).astimezone(UTC)  # without a zone it is taken for this machine's
    except (ValueError, OverflowError) as error:
        says = f"{text[:50]!r}: use how long ago, as in 10m, 2h or 7d, or a time as in 2026-01-31T12:00:00Z"
        raise argparse.ArgumentTypeError(says) from error


def behind_the_command() -> argparse.ArgumentParser:
    """A parent for subcommands, which take ``--state`` too, without undoing the one before them."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--state", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return shared
