"""Saves a checkpoint with a folder in it, and a file for TensorBoard; checkpoint storage gets both."""

from determined import core


def main() -> None:
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        context.train.report_validation_metrics(1, {"loss": 1.0})
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "weights").write_bytes(bytes(3_000_000))
            (path / "code").mkdir()
            (path / "code" / "train.py").write_text("print(1)")
        (context.train.get_tensorboard_path() / "events.out.tfevents.1").write_bytes(b"events")
        context.train.upload_tensorboard_files()


if __name__ == "__main__":
    main()
