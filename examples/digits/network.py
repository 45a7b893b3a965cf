"""A multilayer perceptron in numpy: one hidden layer, softmax, momentum. Trains in seconds on one core."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

PIXELS = 64
CLASSES = 10


@dataclass
class Network:
    """Weights and momenta. ``weights`` maps a name to an array; all arrays are float64."""

    weights: dict[str, np.ndarray]
    momenta: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def initialise(cls, hidden: int, rng: np.random.RandomState) -> Network:
        """He initialisation for the hidden layer, Glorot for the output."""
        weights = {
            "w1": rng.normal(0, np.sqrt(2 / PIXELS), (PIXELS, hidden)),
            "b1": np.zeros(hidden),
            "w2": rng.normal(0, np.sqrt(1 / hidden), (hidden, CLASSES)),
            "b2": np.zeros(CLASSES),
        }
        return cls(weights, {name: np.zeros_like(array) for name, array in weights.items()})

    def probabilities(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hidden activations (n, hidden) and class probabilities (n, 10) of ``images`` (n, 64)."""
        hidden = np.maximum(images @ self.weights["w1"] + self.weights["b1"], 0)
        logits = hidden @ self.weights["w2"] + self.weights["b2"]
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        return hidden, exponentials / exponentials.sum(axis=1, keepdims=True)

    def gradients(self, images: np.ndarray, labels: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
        """Mean cross-entropy of one batch, and its gradient by every weight."""
        hidden, probabilities = self.probabilities(images)
        rows = np.arange(len(labels))
        loss = float(-np.log(probabilities[rows, labels] + 1e-12).mean())
        error = probabilities.copy()
        error[rows, labels] -= 1
        error /= len(labels)
        below = (error @ self.weights["w2"].T) * (hidden > 0)
        return loss, {
            "w1": images.T @ below,
            "b1": below.sum(axis=0),
            "w2": hidden.T @ error,
            "b2": error.sum(axis=0),
        }

    def descend(self, gradients: dict[str, np.ndarray], *, learning_rate: float, momentum: float) -> None:
        for name, gradient in gradients.items():
            self.momenta[name] = momentum * self.momenta[name] - learning_rate * gradient
            self.weights[name] += self.momenta[name]

    def evaluate(self, images: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        """Mean cross-entropy and accuracy (0..1)."""
        _, probabilities = self.probabilities(images)
        loss = float(-np.log(probabilities[np.arange(len(labels)), labels] + 1e-12).mean())
        return loss, float((probabilities.argmax(axis=1) == labels).mean())
