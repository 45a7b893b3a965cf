"""The standing of a job in the queue of its pool."""

from __future__ import annotations

from datetime import UTC, datetime

from libs.job_rank import job_rank
from services.api.queries.experiments.job_summary import NO_LINE, QueueEntry, summarise
from services.api.wire.experiments.experiments import (
    JobState,
)


def test_place_in_the_queue() -> None:
    queue = [
        QueueEntry(name, job_rank(priority, datetime(2026, 1, day, tzinfo=UTC), name, False), day == 1)
        for name, priority, day in (("a", 5, 1), ("b", 5, 2), ("c", 1, 3))
    ]
    places = {job.job_id: summarise(queue, job.job_id) for job in queue}
    assert {name: summary and (summary.state, summary.jobs_ahead) for name, summary in places.items()} == {
        "a": (JobState.SCHEDULED, 1),
        "b": (JobState.QUEUED, 2),
        "c": (JobState.QUEUED, 0),
    }
    assert summarise(queue, "d") is None
    unordered = summarise(queue, "a", lines_up=False)
    assert unordered is not None
    assert unordered.jobs_ahead == NO_LINE
