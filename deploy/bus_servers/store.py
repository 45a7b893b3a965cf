"""What a server of the bus has on its disk, by the files that it keeps there.

A server by itself and one of a cluster keep streams alike. A cluster knows its streams from a log of its own beside
them, and a server deletes what that does not name: so a store has to be converted before its server joins a cluster.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SHRUNK: Final = "RESOLUTE_SHRUNK"
"""A stream that says that everything is on this server alone: whatever a log of a cluster says here is over."""

_ABANDONED: Final = "before-conversion"
_WORK: Final = "conversion"


@dataclass(frozen=True)
class Store:
    """``root`` is the ``store_dir`` of the server."""

    root: Path

    @property
    def streams_folder(self) -> Path:
        return self.root / "jetstream"

    @property
    def work(self) -> Path:
        """Where a conversion builds what is going to be the store."""
        return self.root / _WORK

    @property
    def built(self) -> Path:
        return self.work / "new"

    def has_streams(self) -> bool:
        return next(self._configs(), None) is not None

    def is_of_cluster(self) -> bool:
        """Whether it has the log by which a cluster knows its streams."""
        return any(self.streams_folder.glob("*/_js_/_meta_"))

    def was_shrunk(self) -> bool:
        """Whether a cluster left everything to this server, and nothing was spread over servers again since."""
        configs = [json.loads(path.read_text()) for path in self._configs()]
        return SHRUNK in {each["name"] for each in configs} and all(each["num_replicas"] == 1 for each in configs)

    def accounts(self) -> set[str]:
        """Accounts that have streams."""
        return {path.parents[2].name for path in self._configs()}

    def swap(self) -> None:
        """Put what was built in the place of the store; ``recover`` finishes it after a crash."""
        self.streams_folder.rename(self.root / _ABANDONED)
        (self.built / "jetstream").rename(self.streams_folder)
        self.recover()

    def recover(self) -> None:
        """Finish a swap that was begun, and forget a conversion that was not finished."""
        abandoned = self.root / _ABANDONED
        if abandoned.exists() and not self.streams_folder.exists():
            (self.built / "jetstream").rename(self.streams_folder)
        for left in (abandoned, self.work):
            if left.exists():
                shutil.rmtree(left)

    def _configs(self) -> Iterator[Path]:
        return self.streams_folder.glob("*/streams/*/meta.inf")
