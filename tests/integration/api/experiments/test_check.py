"""What the scheduler is asked about an experiment that somebody is about to submit."""

from __future__ import annotations

import msgspec
import pytest

from libs.bus import CoreMessage
from libs.events import subjects
from libs.events.requests.queue_checks import QueueAnswer, QueueAnswers, QueueCheck
from tests.integration.api.experiments.conftest import CONFIG, Api

pytestmark = pytest.mark.asyncio(loop_scope="module")

POD = """
preemption_timeout: 77
environment:
  pod_spec:
    spec:
      nodeSelector: {gpu: a100}
"""


async def test_the_question_has_what_a_submission_would_store(api: Api) -> None:
    asked: list[QueueCheck] = []

    async def answer(message: CoreMessage) -> bytes:
        asked.append(msgspec.json.decode(message.data, type=QueueCheck))
        return msgspec.json.encode(QueueAnswers(answers=tuple(QueueAnswer() for _ in asked[-1].requests)))

    config = CONFIG + POD
    async with api.app.bus.serve(subjects.CHECK_QUEUE, answer):
        await api.ok("POST", "/api/v1/resolute/check", json={"config": config})
    experiment = await api.create_empty(config)
    stored = (await api.ok("GET", f"/api/v1/experiments/{experiment}"))["experiment"]["config"]
    assert stored["environment"]["pod_spec"]["spec"]["nodeSelector"] == {"gpu": "a100"}
    [question] = asked
    assert {msgspec.json.encode(one.pod_spec) for one in question.requests} == {
        msgspec.json.encode(stored["environment"]["pod_spec"])
    }
    assert {one.preemption_timeout_s for one in question.requests} == {stored["preemption_timeout"]} == {77}
