"""Does in each attempt what the table of continued trials says of it (docs/reference/experiments.md 7)."""

import sys
from pathlib import Path

import determined as det
from determined import core


def main() -> int:
    info = det.get_cluster_info()
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        match info.trial._trial_run_id:
            case 1:
                context.train.report_training_metrics(1, {"x": 1})
                return 7
            case 2:
                context.train.report_training_metrics(1, {"x": 2})
                context.train.report_training_metrics(2, {"x": 3})
                with context.checkpoint.store_path({"steps_completed": 2}) as (path, _):
                    (Path(path) / "step").write_text("2")
                context.train.report_training_metrics(3, {"x": 4})
                return 8
        assert info.trial._steps_completed == 2
        assert info.latest_checkpoint is not None
        context.train.report_training_metrics(3, {"x": 5})
    return 0


if __name__ == "__main__":
    sys.exit(main())
