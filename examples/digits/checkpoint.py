"""A checkpoint is one file: weights, momenta and how far training had come."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from network import Network

FILE = "state.npz"


@dataclass
class Progress:
    """``steps`` batches are done in all; ``epoch`` is the one in progress, ``batch`` the next batch of it."""

    steps: int = 0
    epoch: int = 0
    batch: int = 0


def save(directory: Path, network: Network, progress: Progress) -> None:
    arrays = {f"weight.{name}": array for name, array in network.weights.items()}
    arrays |= {f"momentum.{name}": array for name, array in network.momenta.items()}
    np.savez(directory / FILE, progress=np.array([progress.steps, progress.epoch, progress.batch]), **arrays)


def restore(directory: Path) -> tuple[Network, Progress]:
    with np.load(directory / FILE) as state:
        weights = {name.partition(".")[2]: state[name] for name in state.files if name.startswith("weight.")}
        momenta = {name.partition(".")[2]: state[name] for name in state.files if name.startswith("momentum.")}
        steps, epoch, batch = (int(number) for number in state["progress"])
    return Network(weights, momenta), Progress(steps, epoch, batch)
