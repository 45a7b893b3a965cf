"""Processes of the state folder of ``resolute up``: whether all of them run, and go on running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from deploy import restarting
from deploy.operations.doctor.findings import Finding, ok, problem

PART: Final = "services"


def check_services(state: Path) -> list[Finding]:
    """Nothing where ``resolute up`` has planned nothing."""
    names = restarting.planned(state)
    if not names:
        return []
    down = [name for name in names if not restarting.runs(state, name)]
    return about_services(state, names, down, restarting.restarting(state))


def about_services(
    state: Path, names: Sequence[str], down: Sequence[str], unsteady: Mapping[str, str]
) -> list[Finding]:
    """One finding for each that fails, or one for all. Pure."""
    if len(down) == len(names) and not unsteady:
        return [problem(PART, f"none of {state} runs", remedy="start them: resolute up")]
    logs = state / "logs"
    findings = [
        problem(PART, says, remedy=f"read {logs / f'{name}.log'}")
        for name, says in zip(unsteady, restarting.in_words(unsteady), strict=True)
    ]
    if missing := [name for name in down if name not in unsteady]:
        remedy = f"see {logs / 'supervisor.log'}, or start what is missing: resolute up"
        findings.append(problem(PART, f"{', '.join(missing)} of {state} do not run", remedy=remedy))
    return findings or [ok(PART, f"all of {state} run")]
