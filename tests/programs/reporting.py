"""Reports metrics of every kind that training code may report, saves checkpoints, and ends as its hyperparameters say.

Hyperparameters: ``steps`` to do, ``fail_at`` a step of the first run at which it fails after it has saved (0: never),
``always_fails``, and ``lr`` and ``nested.width``, which the values depend on.
"""

import math
import sys
from pathlib import Path

import determined as det
from determined import core


def main() -> None:
    info = det.get_cluster_info()
    hparams = info.trial.hparams
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        first = resume(context, info.latest_checkpoint) + 1
        context.train.set_metadata({"made_by": "tests", "nested": {"lr": hparams["lr"]}, "list": [1, "two"]})
        for step in range(first, hparams["steps"] + 1):
            report(context, step, hparams)
            if step % 3 == 0:
                save(context, step)
            if step == hparams["fail_at"] + 1 and info.trial._trial_run_id == 1 and hparams["fail_at"]:
                sys.exit("fails once")
        if hparams["always_fails"]:
            sys.exit("fails as it was told")


def report(context, step, hparams):
    width = hparams["nested"]["width"]
    loss = hparams["lr"] * width / step
    numbers = {"loss": loss, "epochs": step / 4, "count": step, "big": 1e300 * step, "infinite": math.inf}
    batches = [{"loss": loss + batch} for batch in range(2)]
    context.train.report_training_metrics(
        step, {**numbers, "word": f"step {step}", "flag": step % 2 == 0, "none": None}, batch_metrics=batches
    )
    context.train.report_metrics(
        "inference", step, {"latency.p99": 1 / step, "word": "inferred", "not_a_number": math.nan}
    )
    if step % 2 == 0:
        context.train.report_validation_metrics(step, {"loss": loss / 2, "accuracy": 1 - loss, "count": step})
    if step % 4 == 0:
        context.train.report_metrics("a/b c", step, {"loss": -loss, "deep": {"one": step, "two": [1, 2]}})
    print(f"step {step} loss {loss}", flush=True)


def resume(context, latest):
    if latest is None:
        return 0
    with context.checkpoint.restore_path(latest) as path:
        return int((Path(path) / "step").read_text())


def save(context, step):
    with context.checkpoint.store_path({"steps_completed": step, "of": "reporting"}) as (path, _):
        (path / "step").write_text(str(step))


if __name__ == "__main__":
    main()
