"""A database that training through the unmodified client has filled, as a dump: something of all that can be read."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Final

from deploy.local.configuration import plan
from deploy.local.servers.postgres import find_postgres_bin
from libs.db.connecting.settings import asyncpg_url
from tests.golden.surroundings import make_surroundings
from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import submit

PROGRAM: Final = "reporting.py"
_HPARAMS: Final[dict[str, Any]] = {
    "steps": 12,
    "fail_at": 0,
    "always_fails": False,
    "lr": 0.5,
    "nested": {"width": 4},
}
_BY_LOSS: Final = {"metric": "loss", "smaller_is_better": True}


def fill(dump: Path) -> None:
    """Train on a system of its own, which takes some minutes, and write its database to ``dump``."""
    with running_system(slots=4) as system:
        det = system.det("golden", forked=True)
        det("user", "login", "admin", answers=("",))
        with system.http() as http:
            look = Looking(http)
            ended = _train(det, look)
        make_surroundings(system, ended)
        _wait_for_quiet(system)
        _dump(system, dump)


def _train(det: Client, look: Looking) -> list[int]:
    """Ids of experiments that completed, the richest first."""
    completed = [
        _submit(det, "single", labels=["kept", "both"], description="one trial", max_restarts=0),
        _submit(det, "rolled back", {"fail_at": 4}, max_restarts=2, labels=["both"]),
        _submit(
            det,
            "random",
            {"lr": {"type": "log", "base": 10, "minval": -3, "maxval": 0}, "steps": 6},
            searcher={"name": "random", "max_trials": 3, **_BY_LOSS},
        ),
        _submit(
            det,
            "grid",
            {"nested": {"width": {"type": "categorical", "vals": [2, 8]}}, "steps": 4},
            searcher={"name": "grid", **_BY_LOSS},
        ),
        _submit(
            det,
            "asha",
            {"lr": {"type": "double", "minval": 0.1, "maxval": 0.9}, "steps": 8},
            searcher={"name": "adaptive_asha", "max_trials": 4, "max_time": 8, "time_metric": "count", **_BY_LOSS},
        ),
    ]
    failed = _submit(det, "failed", {"always_fails": True, "steps": 2}, max_restarts=1)
    paused = _submit(det, "paused", options=("--paused",), labels=["Kept"])
    canceled = _submit(det, "canceled", options=("--paused",))
    det("experiment", "cancel", str(canceled))
    for experiment in completed:
        look.wait(experiment)
    wait_until(lambda: look.state(failed) == "STATE_ERROR", timeout_s=180, what="the failing experiment")
    wait_until(lambda: look.state(canceled) == "STATE_CANCELED", timeout_s=60, what="the cancelled experiment")
    assert look.state(paused) == "STATE_PAUSED"
    det("experiment", "archive", str(completed[3]))
    return completed


def _submit(
    det: Client, name: str, hparams: dict[str, Any] | None = None, *, options: tuple[str, ...] = (), **changes: Any
) -> int:
    changes = {"searcher": {"name": "single", **_BY_LOSS}, **changes}
    return submit(det, PROGRAM, *options, name=name, hyperparameters={**_HPARAMS, **(hparams or {})}, **changes)


def _wait_for_quiet(system: WholeSystem) -> None:
    """Until nothing runs any more that would write."""
    running = "SELECT count(*) AS n FROM allocations WHERE released_at IS NULL OR NOT exit_processed"
    wait_until(lambda: system.rows(running)[0]["n"] == 0, timeout_s=180, what="the last task has ended")


def _dump(system: WholeSystem, path: Path) -> None:
    url = asyncpg_url(plan.postgres(system.layout, system.options).url())
    argv = [
        str(find_postgres_bin() / "pg_dump"),
        "--format=custom",
        "--no-owner",
        "--no-privileges",
        f"--file={path}",
        url,
    ]
    subprocess.run(argv, check=True)
