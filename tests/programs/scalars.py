"""Writes three values of ``loss`` as TensorBoard reads them, and uploads them; needs the package tensorboard."""

from determined import core
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter


def main() -> None:
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        writer = EventFileWriter(str(context.train.get_tensorboard_path()))
        for step in range(1, 4):
            value = Summary.Value(tag="loss", simple_value=1.0 / step)
            writer.add_event(Event(step=step, wall_time=step, summary=Summary(value=[value])))
            context.train.report_training_metrics(step, {"loss": 1.0 / step})
        writer.close()
        context.train.upload_tensorboard_files()


if __name__ == "__main__":
    main()
