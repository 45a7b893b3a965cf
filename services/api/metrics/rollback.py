"""Roll-back: a trial that starts again from a checkpoint takes back what earlier runs reported beyond it.

Source: docs/reference/experiments.md 9.2.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from services.api.metrics.groups import Kind


class StoredReport(Struct, frozen=True, kw_only=True):
    """A stored report that was not taken back; ``step`` is its total of batches."""

    id: int
    run: int
    group: str
    kind: Kind
    step: int


def rolled_back(rows: Iterable[StoredReport], *, kind: Kind, run: int, step: int) -> tuple[StoredReport, ...]:
    """The rows that a report of this kind, run and step takes back: those of earlier runs that lie after it.

    Rows of its own kind also where they have the very same step; another kind may already have been reported there
    before the checkpoint was taken. Profiling takes nothing back, and must not be among ``rows``.
    """
    if kind is Kind.PROFILING:
        return ()
    return tuple(row for row in rows if row.run < run and (row.step > step or (row.kind is kind and row.step == step)))


class ReportPosition(Struct, frozen=True, kw_only=True):
    """Where a report stands among those before it.

    back      rows that it takes back
    existing  the row of its group and step, which it has to be merged with
    newest    no row of its group that stays is of a later step
    """

    back: tuple[StoredReport, ...] = ()
    existing: StoredReport | None = None
    newest: bool = True


def find_position(rows: Iterable[StoredReport], *, group: str, kind: Kind, run: int, step: int) -> ReportPosition:
    """Find where a report stands among ``rows``: at least those at or after its step that are of its group or of
    earlier runs."""
    rows = tuple(rows)
    back = rolled_back(rows, kind=kind, run=run, step=step)
    gone = {row.id for row in back}
    own = [row for row in rows if row.group == group and row.id not in gone]
    return ReportPosition(
        back=back,
        existing=next((row for row in own if row.step == step), None),
        newest=not any(row.step > step for row in own),
    )
