"""Trains a classifier of handwritten digits with the Core API: metrics, checkpoints, preemption, resume, a seed.

Hyperparameters: ``hidden`` (neurons), ``learning_rate``, ``momentum``, ``batch_size``, ``epochs``.
With several pods, every pod computes the gradient of its share of each batch and the chief averages them.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import checkpoint
import data
import determined as det
import numpy as np
from determined import core
from network import Network

log = logging.getLogger("digits")


def main() -> None:
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    info = det.get_cluster_info()
    assert info is not None, "this script runs as a trial: det e create search.yaml ."
    # Neither torch nor TensorFlow is needed here, so nobody writes TensorBoard files for us.
    with core.init(distributed=distributed_context(info), tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        train(context, info.trial.hparams, seed=info.trial.trial_seed, latest=info.latest_checkpoint)


def distributed_context(info: Any) -> core.DistributedContext | None:
    """One process per pod; None when there is only one pod with one slot."""
    size = len(info.container_addrs)
    if size == 1 and len(info.slot_ids) <= 1:
        return None
    return core.DistributedContext(
        rank=info.container_rank,
        size=size,
        local_rank=0,
        local_size=1,
        cross_rank=info.container_rank,
        cross_size=size,
        chief_ip=info.container_addrs[0],
    )


def train(context: core.Context, hparams: dict[str, Any], *, seed: int, latest: str | None) -> None:
    training, validation = data.load()
    if latest is None:
        network = Network.initialise(hparams["hidden"], np.random.RandomState(seed))
        progress = checkpoint.Progress()
    else:
        with context.checkpoint.restore_path(latest) as path:
            network, progress = checkpoint.restore(Path(path))
        log.info("resumed from checkpoint %s after %d steps", latest, progress.steps)

    chief = context.distributed.rank == 0
    losses: list[float] = []
    while progress.epoch < hparams["epochs"]:
        batches = training.batches(hparams["batch_size"], seed=seed, epoch=progress.epoch)
        while progress.batch < len(batches):
            losses.append(step(context, network, training, batches[progress.batch], hparams))
            progress.batch += 1
            progress.steps += 1
        progress.epoch, progress.batch = progress.epoch + 1, 0

        validation_loss, accuracy = network.evaluate(validation.images, validation.labels)
        if chief:
            report_epoch(
                context, hparams, progress, losses=(float(np.mean(losses)), validation_loss), accuracy=accuracy
            )
        losses.clear()
        # Every process must see the same answer, so all of them ask.
        if context.preempt.should_preempt():
            save(context, network, progress)
            log.info("asked to leave after %d steps", progress.steps)
            return
    save(context, network, progress)


def step(
    context: core.Context, network: Network, training: data.Digits, batch: np.ndarray, hparams: dict[str, Any]
) -> float:
    """One batch: each pod takes its share, all apply the mean of the gradients. Returns the loss of our share."""
    share = np.array_split(batch, context.distributed.size)[context.distributed.rank]
    loss, gradients = network.gradients(training.images[share], training.labels[share])
    if context.distributed.size > 1:
        everyone = context.distributed.allgather(gradients)
        gradients = {name: np.mean([one[name] for one in everyone], axis=0) for name in gradients}
    network.descend(gradients, learning_rate=hparams["learning_rate"], momentum=hparams["momentum"])
    return loss


def report_epoch(
    context: core.Context,
    hparams: dict[str, Any],
    progress: checkpoint.Progress,
    *,
    losses: tuple[float, float],
    accuracy: float,
) -> None:
    """``losses`` are those of training and validation."""
    loss, validation_loss = losses
    context.train.report_training_metrics(progress.steps, {"loss": loss, "epochs": progress.epoch})
    context.train.report_validation_metrics(
        progress.steps, {"loss": validation_loss, "accuracy": accuracy, "epochs": progress.epoch}
    )
    context.train.report_progress(progress.epoch / hparams["epochs"])
    log.info("epoch %d: training loss %.4f, accuracy %.4f", progress.epoch, loss, accuracy)


def save(context: core.Context, network: Network, progress: checkpoint.Progress) -> None:
    if context.distributed.rank != 0:
        return
    with context.checkpoint.store_path({"steps_completed": progress.steps}) as (path, uuid):
        checkpoint.save(Path(path), network, progress)
    log.info("saved checkpoint %s at step %d", uuid, progress.steps)


if __name__ == "__main__":
    main()
