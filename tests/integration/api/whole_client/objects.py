"""Objects of every kind by the names that rows of tests have for them.

``{experiment}`` is one that all share and nobody changes; ``{new_experiment}`` is another one each time. What a
scheduler, a launcher and training code would have written is written here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import msgspec
from sqlalchemy import insert, update

from libs.db.engine import Connection
from libs.db.tables.experiments import experiments
from libs.db.tables.logs import log_streams, task_logs
from libs.db.tables.tasks import allocations
from libs.db.tables.trials import trials
from libs.events.observations import ObservedPod
from tests.builders import insert_allocation, insert_checkpoint, insert_generic_task
from tests.integration.api.world import World

CONFIG: Final = """
name: digits
entrypoint: python3 train.py
labels: [kept]
searcher: {name: single, metric: loss, smaller_is_better: true}
"""
RESOURCES: Final = {"code/": 0, "metadata.json": 48, "weights.pt": 5}
NOW: Final = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Objects:
    """A mapping for ``str.format_map``.

    directory  for files that commands are given
    storage    the folder of checkpoints
    """

    def __init__(self, world: World, admin: httpx.Client, *, directory: Path, storage: str) -> None:
        self.world, self.admin = world, admin
        self._directory, self._storage = directory, Path(storage)
        self._shared: dict[str, object] = {}
        self._numbers = count()
        self._makers: dict[str, Callable[[], object]] = {
            "experiment": lambda: self._ended()[0],
            "trial": lambda: self.trial_of(self._ended()[0]),
            "trial_of_two": lambda: self.trial_of(self._ended(saved=2)[0]),
            "task": lambda: self.task_of(int(str(self["trial"]))),
            "live_experiment": self._live,
            "paused_experiment": lambda: self._live(activate=False),
            "archived_experiment": self._archived,
            "live_trial": lambda: self.trial_of(self._live()),
            "checkpoint": lambda: self._ended()[1],
            "job": lambda: self.get(f"/experiments/{self._live()}")["experiment"]["jobId"],
            "notebook": lambda: self._interactive("notebook"),
            "shell": lambda: self._interactive("shell"),
            "command": lambda: self._interactive("command"),
            "tensorboard": lambda: self._interactive("tensorboard", experimentIds=[self["experiment"]]),
            "generic": lambda: world.in_database(insert_generic_task),
            "ended_generic": lambda: world.in_database(lambda tx: insert_generic_task(tx, state="COMPLETED")),
            "paused_generic": lambda: world.in_database(lambda tx: insert_generic_task(tx, state="PAUSED")),
            "workspace": self._workspace,
            "archived_workspace": self._archived_workspace,
            "bound_workspace": lambda: self._workspace(clusterNamespaceMeta={"here": {"namespace": "team"}}),
            "own_workspace": lambda: self._workspace(clusterNamespaceMeta={"here": {"autoCreateNamespace": True}}),
            "pool_workspace": self._bound_to_pool,
            "policy_workspace": self._with_policy,
            "project": self._project,
            "archived_project": self._archived_project,
            "model": self._model,
            "template": self._template,
            "user": self._user,
            "inactive_user": lambda: self._user(active=False),
            "group": self._group,
            "role_user": self._user_with_role,
            "token_id": lambda: self._token()["tokenId"],
            "token": lambda: self._token()["token"],
            "agent": lambda: "a",
            "busy_agent": self._busy_agent,
            "allocation": lambda: self._running(self._live()),
            "daemon_allocation": lambda: self._running(self._live()),
            "running_experiment": lambda: int(str(self["allocation"]).partition(".")[0]),
            "running_task": lambda: str(self["allocation"]).rpartition(".")[0],
            "running_trial": lambda: self.trial_of(int(str(self["running_experiment"]))),
            "external_id": self._unmanaged,
            "unmanaged_experiment": lambda: self._outside()["experimentId"],
            "unmanaged_trial": lambda: self._outside()["id"],
            "archived_model": self._archived_model,
            "model_id": lambda: self.get(f"/models/{self['model']}")["model"]["id"],
            "webhook_id": self._webhook,
            "project_key": lambda: self.get(f"/projects/{self['project_id']}")["project"]["key"],
            "group_id": lambda: self.group_id(self._group()),
            "renamed_group_id": lambda: self.group_id(self._group()),
            "user_id": lambda: self.user_id(self._user()),
            "role_user_id": lambda: self.user_id(self._user_with_role()),
            "project_id": lambda: self.project_id(self._project()),
            "archived_project_id": lambda: self.project_id(self._archived_project()),
            **{
                f"{kind}workspace_id": lambda kind=kind: self.workspace_id(self._makers[f"{kind}workspace"]())
                for kind in ("", "archived_", "bound_", "own_", "pool_", "policy_")
            },
        }
        self._files = {
            "experiment_file": CONFIG,
            "search_file": CONFIG.replace("name: single", "name: random, max_trials: 3"),
            "task_file": "entrypoint: [sh, -c, echo hello]\nresources: {slots: 0}\n",
            "template_file": "environment: {environment_variables: [A=B]}\n",
            "policy_file": "invariant_config: {description: fixed}\n",
            "code_file": "print('hello')\n",
        }

    def __getitem__(self, name: str) -> object:
        if name == "nonce":
            return f"n{next(self._numbers)}"
        if name == "uuid":
            return str(uuid4())
        if name == "out":
            made = self._directory / f"out-{next(self._numbers)}"
            made.mkdir()
            return made
        if name in self._files:
            path = self._directory / name
            path.write_text(self._files[name])
            return path
        if name.startswith("new_"):
            return self._makers[name.removeprefix("new_")]()
        if name not in self._shared:
            self._shared[name] = self._makers[name]()
        return self._shared[name]

    def is_object(self, name: str) -> bool:
        """Whether it is something that there could also be none of."""
        return name.removeprefix("new_") in self._makers

    def get(self, path: str, **parameters: Any) -> Any:
        return self._ok(self.admin.get(f"/api/v1{path}", params=parameters))

    def post(self, path: str, body: Any = None) -> Any:
        return self._ok(self.admin.post(f"/api/v1{path}", json=body))

    def _ok(self, reply: httpx.Response) -> Any:
        assert reply.status_code == 200, f"{reply.request.method} {reply.request.url}: {reply.text}"
        return reply.json()

    def _name(self, what: str) -> str:
        return f"{what}-{next(self._numbers)}"

    def _live(self, *, activate: bool = True) -> int:
        content = [{"path": "train.py", "type": 48, "content": "", "mtime": "0", "mode": 0o644}]
        body = {"config": CONFIG, "modelDefinition": content, "activate": activate}
        return int(self.post("/experiments", body)["experiment"]["id"])

    def trial_of(self, experiment: int) -> int:
        [trial] = self.get(f"/experiments/{experiment}/trials")["trials"]
        return int(trial["id"])

    def task_of(self, trial: int) -> str:
        return str(self.get(f"/trials/{trial}")["trial"]["taskId"])

    def _ended(self, *, saved: int = 1) -> tuple[int, str]:
        """An experiment that has completed, with metrics, ``saved`` checkpoints and a log; and its last checkpoint."""
        experiment = self._live()
        trial = self.trial_of(experiment)
        task = self.task_of(trial)
        for group in ("training", "validation"):
            report = {"trialId": trial, "trialRunId": 0, "stepsCompleted": 3, "metrics": {"avgMetrics": {"loss": 0.25}}}
            self.post(f"/trials/{trial}/metrics", {"metrics": report, "group": group})
        metadata = {"steps_completed": 3, "framework": "torch"}
        row = {"trial_id": trial, "experiment_id": experiment, "steps_completed": 3, "metadata": metadata}

        async def work(connection: Connection) -> str:
            for _ in range(saved):
                uuid = await insert_checkpoint(connection, task_id=task, resources=RESOURCES, **row)
                self._write(uuid, json.dumps(metadata))
            ended = {"state": "COMPLETED", "end_time": NOW}
            await connection.execute(update(experiments).where(experiments.c.id == experiment).values(ended))
            await connection.execute(update(trials).where(trials.c.id == trial).values(ended))
            await _log(connection, task)
            return uuid

        last: str = self.world.in_database(work)
        return experiment, last

    def _write(self, uuid: str, metadata: str) -> None:
        """The files of a checkpoint."""
        files = self._storage / uuid
        (files / "code").mkdir(parents=True)
        (files / "metadata.json").write_text(metadata)
        (files / "weights.pt").write_bytes(b"12345")

    def _archived(self) -> int:
        experiment = self._ended()[0]
        self.post(f"/experiments/{experiment}/archive")
        return experiment

    def _running(self, experiment: int) -> str:
        """The allocation of its trial, whose pod runs."""
        task = self.task_of(self.trial_of(experiment))
        pod = ObservedPod(name="pod-0", state="RUNNING", node="a", addresses=("10.0.0.1",))
        running = {"state": "RUNNING", "assigned_at": NOW, "start_time": NOW, "pods": msgspec.to_builtins((pod,))}
        of_job = {
            "job_id": self.get(f"/experiments/{experiment}")["experiment"]["jobId"],
            "pool": "gpus",
            "preemptible": True,
        }
        allocation: str = self.world.in_database(
            lambda connection: insert_allocation(connection, task_id=task, **of_job, **running)
        )
        return allocation

    def _busy_agent(self) -> str:
        """Somebody's trial runs there."""
        self._running(self._live())
        return "a"

    def _unmanaged(self) -> str:
        """The external id of an experiment that runs elsewhere, with a trial ``outside``."""
        name = self._name("elsewhere")
        body = {"config": CONFIG, "unmanaged": True}
        made = self._ok(self.admin.put(f"/api/v1/experiments/by-external-id/{name}", json=body))
        of_experiment = {"experimentId": made["experiment"]["id"], "unmanaged": True}
        self._ok(
            self.admin.put("/api/v1/trials", json={"externalTrialId": "outside", "createTrialRequest": of_experiment})
        )
        return name

    def _outside(self) -> Any:
        """Its trial."""
        return self.get(f"/trials/by-external-id/{self['external_id']}/outside")["trial"]

    def _archived_model(self) -> str:
        name = self._model()
        self.post(f"/models/{name}/archive")
        return name

    def _webhook(self) -> int:
        body = {
            "name": self._name("hook"),
            "url": "https://example.org/hook",
            "webhookType": "WEBHOOK_TYPE_DEFAULT",
            "triggers": [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}],
            "mode": "WEBHOOK_MODE_WORKSPACE",
        }
        return int(self.post("/webhooks", body)["webhook"]["id"])

    def group_id(self, name: str) -> int:
        found = self.post("/groups/search", {"limit": 500, "name": name})["groups"]
        return int(found[0]["group"]["groupId"])

    def _interactive(self, noun: str, **body: Any) -> str:
        """One that runs and is ready, and has said something."""
        ident = str(self.post(f"/{noun}s", {"config": {"entrypoint": ["true"]}, **body})[noun]["id"])

        async def work(connection: Connection) -> None:
            running = {"state": "RUNNING", "assigned_at": NOW, "start_time": NOW, "is_ready": True}
            await connection.execute(update(allocations).where(allocations.c.task_id == ident).values(running))
            await _log(connection, ident)

        self.world.in_database(work)
        return ident

    def _workspace(self, **fields: Any) -> str:
        name = self._name("workspace")
        self.post("/workspaces", {"name": name, **fields})
        return name

    def workspace_id(self, name: object) -> int:
        [found] = self.get("/workspaces", name=name)["workspaces"]
        return int(found["id"])

    def _archived_workspace(self) -> str:
        name = self._workspace()
        self.post(f"/workspaces/{self.workspace_id(name)}/archive")
        return name

    def _bound_to_pool(self) -> str:
        name = self._workspace()
        self.post("/resource-pools/others/workspace-bindings", {"workspaceIds": [self.workspace_id(name)]})
        return name

    def _with_policy(self) -> str:
        name = self._workspace()
        path = f"/api/v1/config-policies/workspaces/{self.workspace_id(name)}/EXPERIMENT"
        self._ok(self.admin.put(path, json={"configPolicies": self._files["policy_file"]}))
        return name

    def project_id(self, name: object) -> int:
        found = self.get(f"/workspaces/{self.workspace_id(self['workspace'])}/projects")["projects"]
        return next(int(project["id"]) for project in found if project["name"] == name)

    def _project(self) -> str:
        """In the workspace that all share."""
        name = self._name("project")
        self.post(f"/workspaces/{self.workspace_id(self['workspace'])}/projects", {"name": name})
        return name

    def _archived_project(self) -> str:
        name = self._project()
        self.post(f"/projects/{self.project_id(name)}/archive")
        return name

    def _model(self) -> str:
        """With one version."""
        name = self._name("model")
        self.post("/models", {"name": name})
        version = {"modelName": name, "checkpointUuid": self["checkpoint"]}
        self.post(f"/models/{name}/versions", version)
        return name

    def _template(self) -> str:
        name = self._name("template")
        self.post(f"/templates/{name}", {"name": name, "config": {"max_restarts": 3}})
        return name

    def _user(self, *, active: bool = True) -> str:
        name = self._name("user")
        self.post("/users", {"user": {"username": name, "active": active}, "password": "Passw0rd!"})
        return name

    def user_id(self, name: object) -> int:
        return int(self.get(f"/users/{name}/by-username")["user"]["id"])

    def _group(self) -> str:
        """With one member."""
        name = self._name("group")
        self.post("/groups", {"name": name, "addUsers": [self.user_id(self["user"])]})
        return name

    def _user_with_role(self) -> str:
        """Who may view everything."""
        name = self._user()
        given = {"userId": self.user_id(name), "roleAssignment": {"role": {"roleId": 4}}}
        self.post("/roles/add-assignments", {"userRoleAssignments": [given]})
        return name

    def _token(self) -> dict[str, Any]:
        """An access token of a user."""
        made = self.post("/tokens", {"userId": self.user_id(self._user()), "lifespan": "24h"})
        return {"token": made["token"], "tokenId": made["tokenId"]}


async def _log(connection: Connection, task: str) -> None:
    stream = {"stream_key": str(uuid4()), "task_id": task, "contiguous": False, "next_seq": 1, "missing": []}
    await connection.execute(insert(log_streams).values(**stream, opened_at=NOW, written_at=NOW))
    line = {"task_id": task, "ingested_at": NOW, "timestamp": NOW, "level": "INFO"}
    await connection.execute(insert(task_logs).values(**line, log=b"hello\n"))
