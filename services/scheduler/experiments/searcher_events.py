"""Events that a search has yet to be told: in order, and deleted with the snapshot that has taken them in.

Most looks at an experiment find none, and no files to delete either: one statement asks for all of it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert

from libs.db.any_of import any_of
from libs.db.prepared.statements import PreparedStatement, Row
from libs.db.tables.experiments import searcher_events, searcher_snapshots
from services.scheduler.experiments.search import Search
from services.scheduler.transactions.allocation_messages import note
from services.scheduler.transactions.locked_experiment import LockedExperiment

_WAITING: Final = PreparedStatement("""
    SELECT (SELECT snapshot FROM searcher_snapshots WHERE experiment_id = :experiment AND :searches) AS snapshot,
           EXISTS (SELECT FROM searcher_events WHERE experiment_id = :experiment) AS has_events,
           EXISTS (SELECT FROM checkpoint_gc_requests WHERE experiment_id = :experiment) AS has_gc_requests
""")
_UNHEARD: Final = PreparedStatement("""
    SELECT event.id, event.trial_id, event.kind, event.payload, trials.request_id
    FROM searcher_events AS event LEFT JOIN trials ON trials.id = event.trial_id
    WHERE event.experiment_id = :experiment ORDER BY event.id
""")


class PendingWork(NamedTuple):
    """What waits for the next look at an experiment."""

    snapshot: dict[str, Any] | None
    has_events: bool
    has_gc_requests: bool


async def look(locked: LockedExperiment, *, searches: bool) -> PendingWork:
    """What waits for the experiment; its snapshot only if it ``searches``.

    To be called with the trials locked: an event of a trial is committed with what has become of it.
    """
    (found,) = await _WAITING.rows(locked.connection, experiment=locked.experiment.id, searches=searches)
    return PendingWork(found["snapshot"], found["has_events"], found["has_gc_requests"])


def open_search(locked: LockedExperiment, waiting: PendingWork) -> Search:
    """The search of the experiment, new or as it was left. Raises SearchFailedError."""
    return Search.open(locked.experiment.config, waiting.snapshot)


async def deliver(locked: LockedExperiment, search: Search) -> None:
    """Tell the search what has happened, and forget it."""
    heard = await _UNHEARD.rows(locked.connection, experiment=locked.experiment.id)
    for event in heard:
        if event["request_id"] is not None:
            _tell(locked, search, event)
    await _delete(locked, [event["id"] for event in heard])


def _tell(locked: LockedExperiment, search: Search, event: Row) -> None:
    request_id, payload = event["request_id"], event["payload"]
    match event["kind"]:
        case "validation":
            missing = search.validated(request_id, payload["metrics"])
            if missing:
                ignored = "the search ignored a validation report, which lacks these metrics as numbers"
                _note(locked, event["trial_id"], f"{ignored}: {', '.join(missing)}", level="WARNING")
        case "progress":
            search.progressed(request_id, float(payload["progress"]))
        case "early_exit":
            refused = search.exits_early(request_id, payload["reason"])
            if refused:
                _note(locked, event["trial_id"], refused, level="ERROR")


def _note(locked: LockedExperiment, trial_id: int, text: str, *, level: str) -> None:
    """Write into the log of the trial, if it still runs."""
    trial = locked.trial(trial_id)
    row = locked.open_allocation(trial) if trial is not None else None
    if row is not None:
        note(row, text, now=locked.now, out=locked.out, level=level)


async def discard(locked: LockedExperiment) -> None:
    """Nobody will hear what is left: the search is over."""
    mine = searcher_events.c.experiment_id == locked.experiment.id
    await locked.connection.execute(delete(searcher_events).where(mine))


async def store(locked: LockedExperiment, search: Search) -> None:
    """Keep what the search knows, and how far it is."""
    if not search.heard:
        return
    values = {"experiment_id": locked.experiment.id, "snapshot": search.snapshot()}
    await locked.connection.execute(
        insert(searcher_snapshots)
        .values(values)
        .on_conflict_do_update(index_elements=["experiment_id"], set_={"snapshot": values["snapshot"]})
    )
    locked.experiment.progress = search.progress()


async def _delete(locked: LockedExperiment, ids: list[int]) -> None:
    if ids:
        await locked.connection.execute(delete(searcher_events).where(any_of(searcher_events.c.id, ids)))
