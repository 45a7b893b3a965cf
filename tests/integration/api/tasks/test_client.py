"""The unmodified client reads what these routes answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from libs.db.engine import Database
from tests.harness.installed_client import client_python
from tests.integration.api.tasks.service import Replica, Run
from tests.integration.api.tasks.test_logs import add_lines

PROGRAM = """
import json, sys
from determined.common import api
from determined.common.api import bindings, errors

url, token, trial, task, allocation, experiment = sys.argv[1:]
trial, experiment = int(trial), int(experiment)
session = api.Session(url, "admin", token, None)

def report(group, step, **avg):
    metrics = bindings.v1TrialMetrics(
        trialId=trial, trialRunId=1, stepsCompleted=step, reportTime=None,
        metrics=bindings.v1Metrics(avgMetrics=avg, batchMetrics=None))
    body = bindings.v1ReportTrialMetricsRequest(group=group, metrics=metrics)
    bindings.post_ReportTrialMetrics(session, metrics_trialId=trial, body=body)

try:
    bindings.get_GetBestSearcherValidationMetric(session, experimentId=experiment)
    none_yet = False
except errors.NotFoundException:
    none_yet = True

storage = {"type": "directory", "container_path": "/ckpts"}
started = bindings.post_RunPrepareForReporting(
    session, body=bindings.v1RunPrepareForReportingRequest(runId=trial, checkpointStorage=storage))
report("training", 10, loss=0.5, bad=float("nan"))
report("validation", 10, loss=0.25)
bindings.post_ReportTrialProgress(
    session, trialId=trial, body=bindings.v1ReportTrialProgressRequest(progress=0.5, trialId=trial, isRaw=True))
bindings.post_PostTrialRunnerMetadata(session, trialId=trial, body=bindings.v1TrialRunnerMetadata(state="training"))

uuid = "6f4f2c1e-1111-4222-8333-444455556666"
checkpoint = bindings.v1Checkpoint(
    uuid=uuid, taskId=task, allocationId=allocation, resources={"a/": "0", "a/b": "12"},
    metadata={"steps_completed": 10}, state=bindings.checkpointv1State.COMPLETED,
    storageId=started.storageId, training=bindings.v1CheckpointTrainingMetadata())
for _ in range(2):
    bindings.post_ReportCheckpoint(session, body=checkpoint)
changed = bindings.post_PostCheckpointMetadata(
    session, checkpoint_uuid=uuid,
    body=bindings.v1PostCheckpointMetadataRequest(checkpoint=checkpoint))
bindings.post_ReportTrialSourceInfo(session, body=bindings.v1ReportTrialSourceInfoRequest(
    trialSourceInfo=bindings.v1TrialSourceInfo(
        trialId=trial, checkpointUuid=uuid, trialSourceInfoType=bindings.v1TrialSourceInfoType.INFERENCE)))

gathered = session.post(f"api/v1/allocations/{allocation}/all_gather", json={
    "allocationId": allocation, "requestUuid": uuid, "numPeers": 1, "data": {"request_uuid": uuid, "slots": 2}})
metadata = bindings.post_PostRunMetadata(
    session, runId=trial, body=bindings.v1PostRunMetadataRequest(metadata={"a": [1]}, runId=trial))
data = bindings.v1AcceleratorData(
    acceleratorType="cpu", acceleratorUuids=[], allocationId=allocation, nodeName="n", taskId=task)
bindings.post_PostAllocationAcceleratorData(session, allocationId=allocation, body=(
    bindings.v1PostAllocationAcceleratorDataRequest(allocationId=allocation, acceleratorData=data)))
workloads = bindings.get_GetTrialWorkloads(session, trialId=trial)
reports = list(bindings.get_GetMetrics(session, group="training", trialIds=[trial]))
task_lines = list(bindings.get_TaskLogs(session, taskId=task))
trial_lines = list(bindings.get_TrialLogs(session, trialId=trial))
bindings.post_PostTaskLogs(session, body=bindings.v1PostTaskLogsRequest(logs=[
    bindings.v1TaskLog(log="x\\n", taskId=task, level=bindings.v1LogLevel.INFO)]))

print(json.dumps({
    "none_yet": none_yet,
    "storage": started.storageId,
    "best": bindings.get_GetBestSearcherValidationMetric(session, experimentId=experiment).metric,
    "checkpoint": changed.checkpoint.resources,
    "gathered": gathered.json(),
    "preempt": bindings.get_AllocationPreemptionSignal(session, allocationId=allocation, timeoutSeconds=0).preempt,
    "ready": bindings.get_GetAllocation(session, allocationId=allocation).allocation.isReady,
    "metadata": [metadata.metadata, bindings.get_GetRunMetadata(session, runId=trial).metadata],
    "accelerators": len(bindings.get_GetTaskAcceleratorData(session, taskId=task).acceleratorData),
    "workloads": [len(workloads.workloads), workloads.pagination.total],
    "reports": [metrics.metrics["avg_metrics"] for page in reports for metrics in page.metrics],
    "lines": [[line.message for line in task_lines], [line.log for line in trial_lines]],
    "fields": [fields.rankIds for fields in bindings.get_TaskLogsFields(session, taskId=task)],
    "context": bindings.get_GetTaskContextDirectory(session, taskId=task).b64Tgz,
}))
"""


async def test_the_client_reads_every_answer(db: Database, api: Replica, run: Run) -> None:
    await add_lines(db, run.task, b"hello\n", rank_id=1)
    arguments = (api.url, run.user_token, run.trial, run.task, run.allocation, run.experiment)
    process = await asyncio.create_subprocess_exec(
        str(client_python()), "-c", PROGRAM, *map(str, arguments), stdout=-1, stderr=-1
    )
    async with asyncio.timeout(60):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    found: dict[str, Any] = json.loads(out)
    storage = found.pop("storage")
    assert isinstance(storage, int)
    uuid = "6f4f2c1e-1111-4222-8333-444455556666"
    assert found == {
        "none_yet": True,
        "best": 0.25,
        "checkpoint": {"a/": "0", "a/b": "12"},
        "gathered": {"data": [{"request_uuid": uuid, "slots": 2}]},
        "preempt": False,
        "ready": True,
        "metadata": [{"a": [1]}, {"a": [1]}],
        "accelerators": 1,
        "workloads": [3, 3],
        "reports": [{"loss": 0.5, "bad": "NaN"}],
        "lines": [["[2030-01-02T03:04:05.678900Z]          [rank=1] || hello\n"], ["hello\n"]],
        "fields": [[1]],
        "context": "dGd6",
    }
