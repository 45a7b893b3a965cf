"""Everything that an administrator sees with the client, object by object; run by the interpreter beside ``det``.

Prints JSON: kind -> key -> what the client says of it. Arguments are the name and the password.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from determined.common.api import bindings
from determined.experimental import client

Objects = dict[str, dict[str, Any]]


def everything(determined: client.Determined) -> Objects:
    session = determined._session
    return {**_people(session), **_places(session), **_work(determined), **_models(determined)}


def _fields(message: Any, *names: str) -> dict[str, Any]:
    known: Mapping[str, Any] = message.to_json()
    return {name: known.get(name) for name in names}


def _people(session: Any) -> Objects:
    users = bindings.get_GetUsers(session).users
    found = bindings.post_GetGroups(session, body=bindings.v1GetGroupsRequest(limit=100)).groups or []
    groups = [bindings.get_GetGroup(session, groupId=each.group.groupId).group for each in found]
    who = ("username", "displayName", "admin", "active", "remote", "agentUserGroup")
    return {
        "users": {each.id: _fields(each, *who) for each in users},
        "groups": {
            each.groupId: {"name": each.name, "users": sorted(user.id for user in each.users or [])} for each in groups
        },
    }


def _places(session: Any) -> Objects:
    workspaces = bindings.get_GetWorkspaces(session).workspaces
    projects = [
        project for each in workspaces for project in bindings.get_GetWorkspaceProjects(session, id=each.id).projects
    ]
    templates = bindings.get_GetTemplates(session).templates
    webhooks = bindings.get_GetWebhooks(session).webhooks
    return {
        "workspaces": {each.id: _fields(each, "name", "archived", "immutable", "userId") for each in workspaces},
        "projects": {
            each.id: _fields(each, "name", "key", "workspaceId", "userId", "archived", "description", "notes")
            for each in projects
        },
        "templates": {each.name: _fields(each, "config", "workspaceId") for each in templates},
        "webhooks": {each.id: _fields(each, "url", "name", "workspaceId") for each in webhooks},
    }


def _work(determined: client.Determined) -> Objects:
    found: Objects = {kind: {} for kind in ("experiments", "trials", "metrics", "logs", "checkpoints")}
    session = determined._session
    for experiment in determined.list_experiments():
        shown = bindings.get_GetExperiment(session, experimentId=experiment.id).experiment
        found["experiments"][experiment.id] = _fields(
            shown,
            *("name", "state", "labels", "notes", "userId", "projectId", "jobId", "startTime", "endTime", "progress"),
            *("trialIds", "bestTrialId", "checkpointCount", "checkpointSize", "archived", "config", "originalConfig"),
        )
        for checkpoint in experiment.list_checkpoints():
            training = checkpoint.training
            found["checkpoints"][checkpoint.uuid] = {
                "trial": training.trial_id if training else None,
                "state": checkpoint.state.value if checkpoint.state else None,
                "task": checkpoint.task_id,
                "resources": {path: int(size) for path, size in (checkpoint.resources or {}).items()},
                "metadata": checkpoint.metadata,
                "reportTime": checkpoint.report_time,
            }
        for trial in experiment.list_trials():
            of_trial = bindings.get_GetTrial(session, trialId=trial.id).trial
            found["trials"][trial.id] = _fields(
                of_trial,
                *("experimentId", "state", "hparams", "totalBatchesProcessed", "restarts", "startTime", "endTime"),
                *("summaryMetrics", "searcherMetricValue", "metadata", "taskIds"),
            )
            # The SDK asks for one group after another; no group is all of them.
            pages = bindings.get_GetMetrics(session, trialIds=[trial.id], group="")
            reports = [(each.group, each.totalBatches, each.metrics) for page in pages for each in page.metrics]
            found["metrics"][trial.id] = sorted(reports, key=lambda each: json.dumps(each, sort_keys=True))
            found["logs"][trial.id] = list(trial.iter_logs())
    return found


def _models(determined: client.Determined) -> Objects:
    return {
        "models": {
            model.model_id: {
                "name": model.name,
                "labels": model.labels,
                "metadata": model.metadata,
                "owner": model.username,
                "workspace": model.workspace_id,
                "versions": [
                    (version.model_version, version.name, version.checkpoint.uuid if version.checkpoint else None)
                    for version in model.list_versions()
                ],
            }
            for model in determined.list_models()
        }
    }


if __name__ == "__main__":
    print(json.dumps(everything(client.Determined(user=sys.argv[1], password=sys.argv[2]))))
