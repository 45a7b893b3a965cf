"""What the experiments of these tests run; each file is sent as the context of a trial."""

from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent


def experiment(program: str, **changes: Any) -> dict[str, Any]:
    """Configuration of one trial of ``program`` (a file here, or a shell command), with keys of it changed."""
    entrypoint = f"python3 {program}" if program.endswith(".py") else program
    return {
        "name": f"e2e {program}",
        "entrypoint": entrypoint,
        "searcher": {"name": "single", "metric": "loss"},
        "hyperparameters": {"steps": 3, "pause_s": 0},
        "resources": {"slots_per_trial": 1},
        "max_restarts": 0,
        **changes,
    }
