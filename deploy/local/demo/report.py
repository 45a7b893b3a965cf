"""Prints the trials of an experiment and the best accuracy, with the client's own SDK; run by the client's Python.

Exit code 0 when the experiment completed and its best accuracy is above the goal.
"""

import sys

from determined.experimental import client

GOAL = 0.95


def main(experiment_id: int) -> int:
    experiment = client.get_experiment(experiment_id)
    best = 0.0
    print(f"\n{'TRIAL':>6} {'STATE':<12} {'STEPS':>6} {'ACCURACY':>9}  HYPERPARAMETERS")
    for trial in experiment.list_trials():
        summary = (trial.summary_metrics or {}).get("validation_metrics", {}).get("accuracy", {})
        accuracy = summary.get("max", 0.0)
        steps = max((report.steps_completed for report in trial.iter_metrics("validation")), default=0)
        best = max(best, accuracy)
        hparams = ", ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in sorted(trial.hparams.items())
        )
        state = trial.state.value.replace("STATE_", "")
        print(f"{trial.id:>6} {state:<12} {steps:>6} {accuracy:>9.4f}  {hparams}")
    experiment.reload()
    state = experiment.state.value if experiment.state else ""
    print(f"\nbest accuracy: {best:.4f}")
    return 0 if state.endswith("COMPLETED") and best > GOAL else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
