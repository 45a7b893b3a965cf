"""Interpreters of tasks that are processes of this machine: whether linked users may execute them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

import asyncpg
import yaml

from deploy.operations.doctor.findings import Finding, ok, problem
from libs.db.connecting.settings import DatabaseSettings, address
from libs.db.failures import DRIVER_ERRORS
from services.launcher.backends.process.preparation.interpreter import closed_to_others
from services.launcher.backends.process.supervision.spawning import PYTHON

PART: Final = "linked users"
ANSWERS_WITHIN_S: Final = 5.0
_SETTINGS: Final = Path("config/launcher.yaml")


async def check_interpreters(state: Path, settings: DatabaseSettings) -> list[Finding]:
    """Nothing where no user is linked, or tasks do not run as linked users.

    state  folder of ``resolute up``
    """
    python = await asyncio.to_thread(_python_of_tasks, state)
    if python is None or os.geteuid() != 0:
        return []
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            users = await _linked_users(address(settings))
    except (OSError, TimeoutError, *DRIVER_ERRORS):
        return []  # that the database does not answer, or has no schema, is said elsewhere
    return about_interpreters(users, {program: closed_to_others(program) for program in (python, PYTHON)})


def about_interpreters(users: int, closed: dict[str, str | None]) -> list[Finding]:
    """``closed`` has for each interpreter what keeps ordinary users from it, if anything. Pure."""
    if not users:
        return []
    remedy = "install Python where everybody may execute it, and name that of the tasks by resolute up --python"
    found = [
        problem(PART, f"their tasks cannot start: {place} keeps them from {program}", remedy=remedy)
        for program, place in closed.items()
        if place is not None
    ]
    return found or [ok(PART, f"{users} may execute the interpreters of tasks")]


def _python_of_tasks(state: Path) -> str | None:
    try:
        settings = yaml.safe_load((state / _SETTINGS).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (settings.get("process") or {}).get("python")


async def _linked_users(url: str) -> int:
    connection = await asyncpg.connect(url, timeout=ANSWERS_WITHIN_S)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM users WHERE active AND agent_uid <> 0"))
    finally:
        await connection.close()
