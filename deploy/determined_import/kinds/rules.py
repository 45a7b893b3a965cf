"""What becomes of work that had not ended when the old server was stopped, as conditions for the old database.

Nothing is launched by an import. An experiment that had not ended waits, paused, until its owner activates it, and so
do those of its trials that had not ended; whatever ran for them has ended (docs/reference/import.md). An experiment
that was being deleted is one whose deletion failed: its owner may delete it again. What runs elsewhere and only reports
stays as it was. The aliases are ``e`` for experiments and ``r`` for runs.
"""

from __future__ import annotations

from typing import Final

_ENDED: Final = "('COMPLETED', 'CANCELED', 'ERROR')"
_DELETION: Final = "('DELETING', 'DELETE_FAILED')"

EXPERIMENT_STATE: Final = f"""CASE
    WHEN e.state::text IN {_ENDED} THEN e.state::text
    WHEN e.state::text IN {_DELETION} THEN 'DELETE_FAILED'
    WHEN NOT e.unmanaged THEN 'PAUSED'
    ELSE regexp_replace(regexp_replace(e.state::text, 'STOPPING_KILLED', 'CANCELED'), 'STOPPING_', '') END"""
EXPERIMENT_IS_OPEN: Final = f"({EXPERIMENT_STATE}) IN ('ACTIVE', 'PAUSED', 'RUNNING')"
EXPERIMENT_END: Final = f"CASE WHEN NOT {EXPERIMENT_IS_OPEN} THEN coalesce(e.end_time, e.start_time) END"

# A trial that is open below an experiment that is not has been forgotten by a server that was killed: it ended with it.
TRIAL_STATE: Final = f"""CASE
    WHEN r.state::text IN {_ENDED} THEN r.state::text
    WHEN e.state::text IN {_ENDED} THEN e.state::text
    WHEN NOT {EXPERIMENT_IS_OPEN} THEN 'ERROR'
    WHEN NOT e.unmanaged THEN 'PAUSED'
    ELSE regexp_replace(regexp_replace(r.state::text, 'STOPPING_KILLED', 'CANCELED'), 'STOPPING_', '') END"""
TRIAL_IS_OPEN: Final = f"({TRIAL_STATE}) IN ('ACTIVE', 'PAUSED', 'RUNNING')"
TRIAL_END: Final = f"CASE WHEN NOT {TRIAL_IS_OPEN} THEN coalesce(r.end_time, e.end_time, r.start_time) END"


def run_is_there(run: str) -> str:
    """Whether a run, by the expression of its id, is there with its experiment."""
    return (
        f"EXISTS (SELECT FROM runs run JOIN experiments of_run ON of_run.id = run.experiment_id WHERE run.id = {run})"
    )


def utc(moment: str) -> str:
    """A moment that the old database keeps without its time zone."""
    return f"({moment}) AT TIME ZONE 'UTC'"


def json_object(document: str) -> str:
    """A JSON object; an empty one for NULL and for any other JSON value, which readers could not use."""
    return f"CASE WHEN jsonb_typeof({document}) = 'object' THEN {document} ELSE '{{}}'::jsonb END"


def json_object_or_null(document: str) -> str:
    """A JSON object, or NULL for any other JSON value."""
    return f"CASE WHEN jsonb_typeof({document}) = 'object' THEN {document} END"


def members(document: str, kind: str) -> str:
    """A JSON object with those members of ``document`` that are of this JSON type."""
    return (
        "(SELECT coalesce(jsonb_object_agg(member.key, member.value), '{}'::jsonb)"  # noqa: S608
        f" FROM jsonb_each({json_object(document)}) member WHERE jsonb_typeof(member.value) = '{kind}')"
    )


def folder_state(state: str) -> str:
    """The state of a workspace or project: '' or that its deletion failed."""
    return f"CASE WHEN {state}::text IN ('DELETING', 'DELETE_FAILED', 'DELETED') THEN 'DELETE_FAILED' ELSE '' END"
