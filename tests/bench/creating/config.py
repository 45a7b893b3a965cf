"""The experiment that is created: as long as those of users, with one trial."""

from __future__ import annotations

from typing import Final

CONFIG: Final = """
name: mnist
description: digits
labels: [vision, nightly]
entrypoint: python3 -m determined.launch.torch_distributed python3 train.py --epochs 10
data: {url: "s3://datasets/mnist", workers: 4}
hyperparameters:
  lr: {type: log, base: 10, minval: -4, maxval: -1}
  dropout: {type: double, minval: 0.1, maxval: 0.8}
  layers: {type: int, minval: 1, maxval: 8}
  optimizer: {type: categorical, vals: [adam, sgd, lamb]}
  batch_size: 64
  model: {width: 128, activation: relu, heads: {type: int, minval: 1, maxval: 16}}
searcher: {name: random, metric: validation_loss, smaller_is_better: true, max_trials: 1}
resources: {slots_per_trial: 1, shm_size: 4294967296}
environment:
  environment_variables: [NCCL_DEBUG=INFO, OMP_NUM_THREADS=1, "CACHE=/tmp/cache"]
  image: {cpu: "example/environments:cpu", cuda: "example/environments:cuda"}
bind_mounts: [{host_path: /data, container_path: /data, read_only: true}]
log_policies:
  - {name: memory, pattern: ".*out of memory.*", action: cancel_retries}
max_restarts: 2
min_validation_period: {batches: 100}
"""
