"""Keys of the orders that the bus has: a copy of those of the bucket ``ORDERS``, kept fresh by a watch.

To list the bucket whenever somebody asks would cost as much as all orders together, every few seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from contextlib import aclosing

from libs.bus import Bus, SnapshotEnd
from libs.events import subjects


class OrderKeys:
    """Lags behind the bucket by what is on its way: whoever acts on a difference looks at the key itself first.

    listed  called whenever all keys have been read, at first and after any doubt about the link
    """

    def __init__(self, *, listed: Callable[[], None] = lambda: None) -> None:
        self._listed = listed
        self._present: set[str] = set()
        self._is_complete = False

    @property
    def present(self) -> Set[str] | None:
        """The keys that exist; None while they have not all been read."""
        return self._present if self._is_complete else None

    async def follow(self, bus: Bus) -> None:
        """Keep the copy until cancelled."""
        async with aclosing(bus.bucket(subjects.ORDERS_BUCKET).watch(headers_only=True)) as changes:
            async for change in changes:
                if isinstance(change, SnapshotEnd):
                    self._present = set(change.keys)
                    self._is_complete = True
                    self._listed()
                elif change.value is None:
                    self._present.discard(change.key)
                else:
                    self._present.add(change.key)
