"""The handwritten digits that come with scikit-learn: 1,797 images of 8 x 8 pixels. Nothing is downloaded.

Where tasks run in an image without scikit-learn, run ``python3 data.py`` once on your own machine: it writes the images
to ``digits.npz``, which then travels with the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

PACKED = Path(__file__).with_name("digits.npz")
VALIDATION_SHARE = 0.2
SPLIT_SEED = 0  # the same split for every trial, so that their accuracies can be compared


@dataclass(frozen=True)
class Digits:
    """Images (n, 64) scaled to 0..1, labels (n,)."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, size: int, *, seed: int, epoch: int) -> list[np.ndarray]:
        """Index arrays of one epoch, shuffled. The same seed and epoch give the same order, whatever came before."""
        order = np.random.RandomState((seed + 1_000_003 * epoch) % 2**32).permutation(len(self))
        return [order[start : start + size] for start in range(0, len(order) - size + 1, size)]


def load() -> tuple[Digits, Digits]:
    """Training and validation part."""
    images, labels = unpack() if PACKED.exists() else from_scikit_learn()
    order = np.random.RandomState(SPLIT_SEED).permutation(len(labels))
    held_out = int(len(labels) * VALIDATION_SHARE)
    validation, training = order[:held_out], order[held_out:]
    return Digits(images[training], labels[training]), Digits(images[validation], labels[validation])


def from_scikit_learn() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits  # takes a second to import, and may be absent

    digits = load_digits()
    return digits.data / 16.0, digits.target


def unpack() -> tuple[np.ndarray, np.ndarray]:
    with np.load(PACKED) as packed:
        return packed["images"], packed["labels"]


if __name__ == "__main__":
    images, labels = from_scikit_learn()
    np.savez_compressed(PACKED, images=images, labels=labels)
