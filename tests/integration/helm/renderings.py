"""What the chart makes of each values file, rendered once in a run, whichever of its processes asks first."""

from __future__ import annotations

import fcntl
import pickle
from collections.abc import Callable
from pathlib import Path

from tests.harness.helm import Release


class Renderings:
    """A values file's name -> what the chart makes of it.

    folder  shared by the processes of the run; nothing in it is of another one
    render  what the chart makes of it, from nothing
    """

    def __init__(self, folder: Path, render: Callable[[str], Release]) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._render = render
        self._read: dict[str, Release] = {}

    def __call__(self, name: str) -> Release:
        if name not in self._read:
            with (self._folder / f"{name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._read[name] = self._kept(self._folder / f"{name}.pickle", name)
        return self._read[name]

    def _kept(self, path: Path, name: str) -> Release:
        if path.exists():
            found: Release = pickle.loads(path.read_bytes())
            return found
        rendered = self._render(name)
        whole = path.with_suffix(".new")  # whoever is killed while it writes leaves no half of a release
        whole.write_bytes(pickle.dumps(rendered))
        whole.rename(path)
        return rendered
