"""What is there besides experiments: people, places, models, tasks, and all that administrators set."""

from __future__ import annotations

from typing import Any, Final

import httpx

from tests.harness.whole_system import WholeSystem

_TASK: Final = {"config": {"entrypoint": ["echo", "hello"], "resources": {"slots": 0}}}


def make_surroundings(system: WholeSystem, experiments: list[int]) -> None:
    """Everything as an administrator makes it over REST; ``experiments`` have completed, each with checkpoints."""
    headers = {"Authorization": f"Bearer {system.token('admin')}"}
    with httpx.Client(base_url=f"{system.url}/api/v1", headers=headers, timeout=60) as admin:
        maker = _Maker(admin)
        maker.people()
        maker.places(experiments)
        maker.models(experiments)
        maker.tasks(experiments)
        maker.unmanaged()


class _Maker:
    def __init__(self, admin: httpx.Client) -> None:
        self._admin = admin

    def people(self) -> None:
        users = [
            self._post(
                "/users", {"user": {"username": name, "displayName": shown, "active": active}, "password": "Passw0rd!"}
            )
            for name, shown, active in (("zoe", "Zoe", True), ("eva", "", True), ("gone", "Gone", False))
        ]
        ids = [user["user"]["id"] for user in users]
        group = self._post("/groups", {"name": "readers", "addUsers": ids[:2]})["group"]["groupId"]
        for role in (4, 5):
            given = {"groupId": group, "roleAssignment": {"role": {"roleId": role}}}
            self._post("/roles/add-assignments", {"groupRoleAssignments": [given]})
        given = {"userId": ids[0], "roleAssignment": {"role": {"roleId": 2}, "scopeWorkspaceId": 1}}
        self._post("/roles/add-assignments", {"userRoleAssignments": [given]})
        self._post("/tokens", {"userId": ids[0], "lifespan": "24h", "description": "of zoe"})
        self._post("/users/setting", {"settings": [{"key": "k", "storagePath": "p", "value": "[1, 2]"}]})
        self._request("PUT", "/master/cluster_message", {"message": "Maintenance", "startTime": "2020-01-01T00:00:00Z"})

    def places(self, experiments: list[int]) -> None:
        workspaces = [
            self._post("/workspaces", {"name": name})["workspace"]["id"] for name in ("team a", "Team B", "old")
        ]
        projects = [
            self._post(f"/workspaces/{workspaces[0]}/projects", {"name": name, "description": f"about {name}"})[
                "project"
            ]["id"]
            for name in ("vision", "speech")
        ]
        storage = {"type": "s3", "bucket": "b", "access_key": "key", "secret_key": "secret"}
        self._request("PATCH", f"/workspaces/{workspaces[0]}", {"checkpointStorageConfig": storage})
        self._post(f"/workspaces/{workspaces[2]}/archive")
        self._post(f"/workspaces/{workspaces[1]}/pin")
        self._post(f"/projects/{projects[1]}/notes", {"name": "note", "contents": "text"})
        self._post(f"/experiments/{experiments[2]}/move", {"destinationProjectId": projects[0]})
        self._post(
            "/users/activity", {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": 1}
        )
        for number, name in enumerate(("base", "gpu/large")):
            body = {"name": name, "config": {"max_restarts": number}, "workspaceId": workspaces[number]}
            self._post(f"/templates/{name}", body)
        triggers = [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}]
        hook = {"url": "https://example.org/hook", "webhookType": "WEBHOOK_TYPE_DEFAULT", "triggers": triggers}
        for name in ("one", "two"):
            self._post(
                "/webhooks", {**hook, "name": name, "mode": "WEBHOOK_MODE_WORKSPACE", "workspaceId": workspaces[0]}
            )
        policies = "invariant_config: {description: fixed}\nconstraints: {resources: {max_slots: 4}}\n"
        path = f"/config-policies/workspaces/{workspaces[1]}/EXPERIMENT"
        self._request("PUT", path, {"configPolicies": policies})

    def models(self, experiments: list[int]) -> None:
        for number, name in enumerate(("resnet", "Resnet 10", "resnet 9")):
            self._post(
                "/models", {"name": name, "labels": ["l", f"l{number}"], "metadata": {"n": number}, "workspaceId": 1}
            )
            found = self._get(f"/experiments/{experiments[number]}/checkpoints?states=STATE_COMPLETED")["checkpoints"]
            for checkpoint in found[: number + 1]:
                body = {"modelName": name, "checkpointUuid": checkpoint["uuid"], "name": f"of {name}", "comment": "c"}
                self._post(f"/models/{name}/versions", body)
        self._post("/models/resnet 9/archive")

    def tasks(self, experiments: list[int]) -> None:
        for _ in range(2):
            self._post("/commands", _TASK)
        self._post("/generic-tasks", {"config": "entrypoint: [echo, hello]\nresources: {slots: 0}\n"})
        for noun in ("shells", "notebooks", "tensorboards"):
            body = {"experimentIds": experiments[:1]} if noun == "tensorboards" else {}
            made = self._post(f"/{noun}", {"config": {"resources": {"slots": 0}}, **body})
            self._post(f"/{noun}/{made[noun.removesuffix('s')]['id']}/kill")

    def unmanaged(self) -> None:
        """An experiment that runs elsewhere, and a trial of it that reports."""
        config = "name: elsewhere\nentrypoint: none\nsearcher: {name: single, metric: loss}\n"
        body = {"config": config, "unmanaged": True}
        experiment = self._request("PUT", "/experiments/by-external-id/outside", body)["experiment"]["id"]
        of_experiment = {"experimentId": experiment, "unmanaged": True, "hparams": {"lr": 0.25}}
        trial = self._request("PUT", "/trials", {"externalTrialId": "first", "createTrialRequest": of_experiment})
        ident = trial["trial"]["id"]
        for step in (3, 1, 2):
            metrics = {"avgMetrics": {"loss": 1 / step, "names.with.dots": step}}
            report = {"trialId": ident, "trialRunId": 0, "stepsCompleted": step, "metrics": metrics}
            for group in ("training", "validation"):
                self._post(f"/trials/{ident}/metrics", {"metrics": report, "group": group})
        self._request("PATCH", f"/trials/{ident}", {"trialId": ident, "state": "STATE_COMPLETED"})

    def _get(self, path: str) -> Any:
        return self._request("GET", path)

    def _post(self, path: str, body: Any = None) -> Any:
        return self._request("POST", path, body)

    def _request(self, method: str, path: str, body: Any = None) -> Any:
        reply = self._admin.request(method, path, json=body)
        assert reply.is_success, f"{method} {path}: {reply.text}"
        return reply.json()
