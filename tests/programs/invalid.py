"""Finds out that its hyperparameters cannot work."""

import determined as det
from determined import core

with core.init(tensorboard_mode=core.TensorboardMode.MANUAL):
    raise det.InvalidHP("too large")
