"""Training code reports many times a second: how many functions a report goes through is counted here.

The number does not depend on the machine, as times do. Whoever adds to it has a reason, and raises it.
"""

from __future__ import annotations

import json
import sys
import time
from types import FrameType, SimpleNamespace
from typing import Any, Final

from starlette.types import Message, Scope

from libs.clock import SystemClock
from libs.ids import AllocationId, UserId
from libs.tokens import digest
from services.api.access.principal import CallingTask, Principal
from services.api.access.sessions import Sessions
from services.api.http.application import build_application
from services.api.metrics.report import MetricReport
from services.api.routes.table import all_routes

TRIAL: Final = 7
TOKEN: Final = "token"
MOST_CALLS: Final = 88
BODY: Final = json.dumps(
    {
        "group": "training",
        "metrics": {"trialId": TRIAL, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 0.5}}},
    }
).encode()


class Writer:
    def __init__(self) -> None:
        self.stored: list[MetricReport] = []

    async def store(self, report: MetricReport) -> None:
        self.stored.append(report)


async def test_report_goes_through_no_more_functions_than_it_needs() -> None:
    sessions = Sessions(db=None, clock=SystemClock())  # type: ignore[arg-type]  # the token is known already
    task = CallingTask(allocation_id=AllocationId("a"), task_id="t", trial_id=TRIAL, experiment_id=1)
    caller = Principal(user_id=UserId(2), username="u", admin=False, task=task, is_narrow=True)
    sessions._known[b"allocation" + digest(TOKEN)] = (time.monotonic() + 600, caller)
    app = SimpleNamespace(metrics_writer=Writer(), clock=SystemClock(), db=None)
    application = build_application(all_routes(), app, sessions.authenticate)
    statuses: list[int] = []

    async def report() -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": BODY, "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await application(scope(), receive, send)

    await report()  # decoders are made for the first request
    calls: list[str] = []

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(count)
    try:
        await report()
    finally:
        sys.setprofile(None)
    assert statuses == [200, 200]
    assert len(app.metrics_writer.stored) == 2
    assert len(calls) <= MOST_CALLS, "\n".join(calls)


def scope() -> Scope:
    return {
        "type": "http",
        "method": "POST",
        "path": f"/api/v1/trials/{TRIAL}/metrics",
        "raw_path": f"/api/v1/trials/{TRIAL}/metrics".encode(),
        "query_string": b"",
        "headers": [(b"grpc-metadata-x-allocation-token", f"Bearer {TOKEN}".encode())],
    }
