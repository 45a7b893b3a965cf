"""Replaces small files as a whole, also while the disk is full, where space for the next version is kept.

Only the standard library: the supervisor of an allocation uses it as well.
"""

from __future__ import annotations

import os

KEPT_BYTES = 4096


def replace_file(path: str, content: bytes) -> None:
    """Write ``content`` beside the file, and put it in its place; it is on the disk when this returns.

    Raises OSError; the file is what it was then.
    """
    new = _next_of(path)
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        written = 0
        while written < len(content):
            written += os.pwrite(fd, content[written:], written)
        os.ftruncate(fd, len(content))  # only now: what is kept is not given away before it is used
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(new, path)


def keep_space(path: str) -> None:
    """Take the space for the next version of a file. Raises OSError."""
    fd = os.open(_next_of(path), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(fd, bytes(KEPT_BYTES), 0)
    finally:
        os.close(fd)


def _next_of(path: str) -> str:
    return f"{path}.new"
