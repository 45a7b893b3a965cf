"""What the experiments of tests run; each file is sent as the context of a trial."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tests.harness.client import Client

DIRECTORY = Path(__file__).parent


def configuration(program: str, **changes: Any) -> dict[str, Any]:
    """One trial of ``program`` (a file here, or a shell command), with keys of the configuration changed."""
    return {
        "name": f"test of {program}",
        "entrypoint": f"python3 {program}" if program.endswith(".py") else program,
        "searcher": {"name": "single", "metric": "loss"},
        "hyperparameters": {"steps": 3, "pause_s": 0},
        "resources": {"slots_per_trial": 1},
        "max_restarts": 0,
        **changes,
    }


def create_arguments(det: Client, program: str, *options: str, **changes: Any) -> list[str]:
    """Arguments of ``det`` that create an experiment with ``program``."""
    number = sum(1 for _ in det.home.glob("config-*"))
    path = det.home / f"config-{number}.yaml"
    path.write_text(yaml_text(configuration(program, **changes)))
    files = ["--include", str(DIRECTORY / program)] if program.endswith(".py") else []
    return ["experiment", "create", str(path), *files, *options]


def submit(det: Client, program: str, *options: str, **changes: Any) -> int:
    """``det experiment create``; returns the id."""
    return created(det(*create_arguments(det, program, *options, **changes)))


def created(output: str) -> int:
    """The id in what ``det experiment create`` printed."""
    found = re.search(r"Created experiment (\d+)", output)
    assert found is not None, output
    return int(found.group(1))


def yaml_text(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False)
