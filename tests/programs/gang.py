"""steps.py for a trial of several pods: each step is done by all of them together, and reported by the first.

Hyperparameters: ``steps`` to do, ``pause_s`` before each; with ``steps`` 0 it goes on until the file ``finish`` appears
in the shared file system.
"""

import itertools
import time
from pathlib import Path

import determined as det
from determined import core

FINISH = Path("/determined_shared_fs/finish")


def main() -> None:
    info = det.get_cluster_info()
    hparams = info.trial.hparams
    size = len(info.container_addrs)
    distributed = core.DistributedContext(
        rank=info.container_rank,
        size=size,
        local_rank=0,
        local_size=1,
        cross_rank=info.container_rank,
        cross_size=size,
        chief_ip=info.container_addrs[0],
    )
    with core.init(distributed=distributed, tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        is_chief = distributed.rank == 0
        for step in itertools.count(1):
            time.sleep(hparams["pause_s"])
            is_over = step >= hparams["steps"] if hparams["steps"] else FINISH.exists()
            # All leave after the same step, though not all may have seen the file.
            all_over = any(distributed.allgather(is_over))
            if is_chief:
                context.train.report_training_metrics(step, {"loss": 1 / step})
                print(f"step {step}", flush=True)
            if all_over:
                break
        if is_chief:
            context.train.report_validation_metrics(step, {"loss": 1 / step})


if __name__ == "__main__":
    main()
