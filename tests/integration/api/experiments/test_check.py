"""What the scheduler is asked about an experiment, or another task, that a user is about to submit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

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


COMMAND = "entrypoint: [sleep, '1']\ndescription: d\nresources: {slots: 2, preemptible: true, time_limit: 2h}\n" + POD
GENERIC = "entrypoint: [sleep, '1']\nresources: {slots: 2}\n" + POD


@asynccontextmanager
async def questions_of(api: Api) -> AsyncIterator[list[QueueCheck]]:
    """What a scheduler is asked, which answers that all of it waits."""
    asked: list[QueueCheck] = []

    async def answer(message: CoreMessage) -> bytes:
        asked.append(msgspec.json.decode(message.data, type=QueueCheck))
        return msgspec.json.encode(QueueAnswers(answers=tuple(QueueAnswer() for _ in asked[-1].requests)))

    async with api.app.bus.serve(subjects.CHECK_QUEUE, answer):
        yield asked


async def test_the_question_has_what_a_submission_would_store(api: Api) -> None:
    config = CONFIG + POD
    async with questions_of(api) as asked:
        await api.ok("POST", "/api/v1/resolute/check", json={"config": config})
    experiment = await api.create_empty(config)
    stored = (await api.ok("GET", f"/api/v1/experiments/{experiment}"))["experiment"]["config"]
    assert stored["environment"]["pod_spec"]["spec"]["nodeSelector"] == {"gpu": "a100"}
    [question] = asked
    assert {msgspec.json.encode(one.pod_spec) for one in question.requests} == {
        msgspec.json.encode(stored["environment"]["pod_spec"])
    }
    assert {one.preemption_timeout_s for one in question.requests} == {stored["preemption_timeout"]} == {77}


@pytest.mark.parametrize(
    ("kind", "config", "is_preemptible", "timeout_s", "limit_s"),
    [
        ("NOTEBOOK", "", False, 0, None),
        ("SHELL", "resources: {slots: 2}\n" + POD.replace("preemption_timeout: 77", ""), False, 0, None),
        ("COMMAND", COMMAND.replace("preemption_timeout: 77", ""), True, 0, 7200),
        ("GENERIC", GENERIC, False, 77, None),
    ],
)
async def test_the_question_about_a_task_has_what_its_launch_would_store(
    api: Api, kind: str, config: str, is_preemptible: bool, timeout_s: int, limit_s: int | None
) -> None:
    async with questions_of(api) as asked:
        body = {"type": f"TASK_TYPE_{kind}", "config": config}
        found = await api.ok("POST", "/api/v1/resolute/check/tasks", json=body)
    [question] = asked
    first = question.requests[0]
    assert (first.task_type, first.num_pods) == (kind, 1)
    assert (first.is_preemptible, first.preemption_timeout_s) == (is_preemptible, timeout_s)
    assert first.time_limit_s == limit_s
    slots = 2 if "slots: 2" in config else 1
    assert (first.slots, found["start"]["slots"], found["trials"]) == (slots, slots, 0)
    assert bool(found["projectId"]) is (kind == "GENERIC")
    if "gpu" in config:
        assert first.pod_spec is not None
        assert first.pod_spec["spec"]["nodeSelector"] == {"gpu": "a100"}
    assert [one.slots for one in question.requests if one.slots != slots] == ([1] if slots == 2 else [])


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "type: has to be one of TASK_TYPE_NOTEBOOK"),
        ({"type": "TASK_TYPE_TENSORBOARD"}, "type"),
        ({"type": "TASK_TYPE_COMMAND", "config": "- 1"}, "config: has to be a mapping"),
        ({"type": "TASK_TYPE_COMMAND", "config": "a: ["}, "invalid YAML: line 2"),
        ({"type": "TASK_TYPE_COMMAND", "config": "nonsense: 1"}, "nonsense"),
        ({"type": "TASK_TYPE_GENERIC", "config": GENERIC, "template": "t"}, "template"),
        ({"type": "TASK_TYPE_GENERIC", "config": "entrypoint: 7"}, "entrypoint"),
    ],
)
async def test_a_task_that_would_be_refused_is_refused(api: Api, body: dict[str, Any], names: str) -> None:
    assert names in await api.refused(400, "POST", "/api/v1/resolute/check/tasks", json=body)
