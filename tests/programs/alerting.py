"""Says something to whoever listens to its experiment."""

from determined import core

if __name__ == "__main__":
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        context.alert(title="loss fell", description="to a tenth", level="warn")
