"""Decides which directories are hidden from a pod, and which of those in them are shown all the same (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Cover(NamedTuple):
    """A directory that is made empty (``is_hidden``), or one that is mounted again where it was hidden."""

    path: str
    is_hidden: bool


def covers(hidden: Iterable[str], visible: Iterable[str]) -> list[Cover]:
    """What has to be done about ``hidden`` and ``visible`` directories, in order; the innermost that is named decides.

    Directories whose surroundings are already as they should be are left out. What is named as both is hidden.
    """
    wanted = dict.fromkeys(visible, False) | dict.fromkeys(hidden, True)
    found: list[Cover] = []
    for path in sorted(wanted, key=lambda path: path.split("/")):
        around = [cover for cover in found if is_within(path, cover.path)]
        if wanted[path] != (bool(around) and around[-1].is_hidden):
            found.append(Cover(path, wanted[path]))
    return found


def is_hidden(path: str, hidden: Iterable[str], visible: Iterable[str]) -> bool:
    """Whether ``path`` is out of sight, by the rules of ``covers``."""
    around = [cover for cover in covers(hidden, visible) if is_within(path, cover.path)]
    return bool(around) and around[-1].is_hidden


def is_within(path: str, directory: str) -> bool:
    """Whether ``path`` is ``directory`` or lies below it; both are absolute and without ``..``."""
    return directory in (path, "/") or path.startswith(f"{directory}/")
