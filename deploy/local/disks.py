"""Which disk of a state folder is full, in words for whoever is kept waiting by it."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.file_systems import FileSystem, full_file_systems
from deploy.local.failure import CannotStart
from deploy.local.layout import Layout, Options

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
REMEDY: Final = "free some space there: what runs goes on by itself then"


def full_disks(layout: Layout, options: Options | None) -> list[FileSystem]:
    """File systems without space among those where the state folder, the streams and the database are."""
    return full_file_systems([layout.root, layout.streams, *([Path(options.postgres_data)] if options else [])])


def in_words(full: Sequence[FileSystem]) -> str:
    one = len(full) == 1
    return f"the file system{'' if one else 's'} {', '.join(map(str, full))} {'is' if one else 'are'} full: {REMEDY}"


def explained(layout: Layout, error: OSError) -> CannotStart | None:
    """The failure to write a file, with the disk that it is due to; None for any other error."""
    if error.errno not in NO_SPACE:
        return None
    full = full_disks(layout, Options.load(layout))
    where = f"{error.filename} cannot be written" if error.filename else "a file cannot be written"
    return CannotStart(f"{where}: {error.strerror}; {in_words(full) if full else REMEDY}")
