"""Reports every step once and prints it; leaves with a checkpoint when asked, and goes on from there.

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
    say(f"trial {info.trial.trial_id} run {info.trial._trial_run_id} seed {info.trial.trial_seed}")
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        done = resume(context, info.latest_checkpoint)
        for step in itertools.count(done + 1):
            time.sleep(hparams["pause_s"])
            context.train.report_training_metrics(step, {"loss": 1 / step})
            say(f"step {step}")
            if is_over(step, hparams["steps"]):
                break
            if context.preempt.should_preempt():
                save(context, step)
                say(f"asked to leave after step {step}")
                return
        context.train.report_validation_metrics(step, {"loss": 1 / step})
        save(context, step)
        say(f"done after step {step}")


def is_over(step: int, steps: int) -> bool:
    return step >= steps if steps else FINISH.exists()


def resume(context: core.Context, latest: str) -> int:
    if latest is None:
        return 0
    with context.checkpoint.restore_path(latest) as path:
        done = int((Path(path) / "step").read_text())
    say(f"resumed from checkpoint {latest} after step {done}")
    return done


def save(context: core.Context, step: int) -> None:
    with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
        (path / "step").write_text(str(step))


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
