"""What an import comes to: both sides counted, kind by kind, and what stays behind. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from deploy.determined_import.old_database import AccessToken
from deploy.determined_import.searches.continuing import UnfinishedExperiments

MOST_SHOWN: Final = 50


class KindReport(Struct, frozen=True, kw_only=True):
    """Rows of one kind: in the old database, copied, left out by reason, and found here when it was complete.

    left    reason -> rows that a repeated import has left as they are here
    named   reason -> keys of those of them that somebody has to look at
    gone    keys of rows that were imported, and that the old database does not have any more
    """

    kind: str
    in_source: int
    imported: int
    skipped: Mapping[str, int]
    in_target: int
    left: Mapping[str, int] = {}
    named: Mapping[str, Sequence[str]] = {}
    gone: Sequence[str] = ()

    @property
    def agrees(self) -> bool:
        passed_over = sum(self.skipped.values()) + sum(self.left.values())
        return self.in_source == self.imported + passed_over and self.imported == self.in_target


class LeftBehind(Struct, frozen=True, kw_only=True):
    """A table of the old database that is not imported."""

    table: str
    rows: int
    reason: str


class ImportReport(Struct, frozen=True, kw_only=True):
    """``source`` is the cluster id of the old installation."""

    source: str
    kinds: list[KindReport]
    left_behind: list[LeftBehind]
    unfinished: UnfinishedExperiments
    access_tokens: list[AccessToken]

    @property
    def agrees(self) -> bool:
        """Whether everything that was to be imported is there."""
        return all(each.agrees for each in self.kinds)

    @property
    def differs(self) -> bool:
        """Whether both sides have something of their own, which somebody has to look at."""
        return any(each.named or each.gone for each in self.kinds)


def as_text(report: ImportReport) -> str:
    """For people; a table, and a paragraph for whatever they may have to do something about."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: ImportReport) -> Iterator[str]:
    width = max(len(each.kind) for each in report.kinds)
    yield f"{'':{width}}  {'there':>10}  {'imported':>10}  {'skipped':>10}  {'here':>10}"
    for each in report.kinds:
        skipped = sum(each.skipped.values()) + sum(each.left.values())
        counted = f"{each.in_source:>10}  {each.imported:>10}  {skipped:>10}  {each.in_target:>10}"
        yield f"{each.kind:{width}}  {counted}{'' if each.agrees else '  THESE DO NOT AGREE'}"
        reasons = {**each.skipped, **each.left}
        yield from (f"{'':{width}}  skipped {rows}: {reason}" for reason, rows in reasons.items())
    if report.differs:
        yield "\nLeft as they are here, because both sides have something of their own:"
        for each in report.kinds:
            for reason, keys in each.named.items():
                yield from (f"  {each.kind} {shown}: {reason}" for shown in _shown(keys))
            yield from (
                f"  {each.kind} {shown}: gone from the old installation, kept here" for shown in _shown(each.gone)
            )
    if report.left_behind:
        yield "\nNot imported:"
        yield from (f"  {each.table}: {each.rows} rows, {each.reason}" for each in report.left_behind)
    if report.unfinished.waiting:
        yield f"\n{report.unfinished.waiting} experiments had not ended. They are paused: det experiment activate ID"
    if report.unfinished.ended:
        yield "\nEnded, because they cannot go on here:"
        yield from (f"  experiment {ident}: {why}" for ident, why in report.unfinished.ended.items())
    if report.access_tokens:
        yield "\nAccess tokens that their owners have to make again, with det token create:"
        yield from (
            f"  {each.owner}: {each.description or 'no description'}, valid until {each.expires_at}"
            for each in report.access_tokens
        )
    yield "\nEverything is there." if report.agrees else "\nThe numbers do not agree: see above."


def _shown(keys: Sequence[str]) -> Iterator[str]:
    """The first of many keys, each as people write it."""
    yield from (each.strip("()").replace('"', "") for each in keys[:MOST_SHOWN])
    if len(keys) > MOST_SHOWN:
        yield f"and {len(keys) - MOST_SHOWN} more (--json has them)"
