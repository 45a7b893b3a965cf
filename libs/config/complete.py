"""Final check of a configuration before it becomes an experiment: nothing is missing, and the layers agree.

Every layer was sound by itself; here the merged whole is read once more, together with what only a whole must have.
Source: docs/reference/experiments.md 1.1 (step 3) and 1.4; docs/reference/scheduling.md 1 (slots_per_trial and
max_slots).
"""

from __future__ import annotations

from libs.config.experiment import read_experiment_config, without_overlong_labels
from libs.config.parts import searcher, storage
from libs.errors import FailedPrecondition
from libs.searchers.errors import InvalidSearcher, InvalidSpace
from libs.searchers.size import check_size
from libs.shapes.problems import ROOT, InvalidConfig, Problem, listing, missing
from libs.shapes.shape import Object

_EVENTUALLY_REQUIRED = ("hyperparameters", "name", "searcher")


def check_complete(config: Object) -> None:
    """Raise InvalidConfig, one line for each problem, unless ``config`` can become an experiment."""
    problems = [*read_experiment_config(config).problems, *_missing(config)] or _disagreements(config)
    if problems:
        raise InvalidConfig(f"config is invalid or incomplete: {listing(problems)}")


def check_stored(experiment_id: int, stored: object) -> None:
    """Raise FailedPrecondition, one line for each problem, unless another layer can be put over what is stored.

    What is only missing may come with that layer.
    """
    if problems := read_experiment_config(without_overlong_labels(stored)).problems:
        raise FailedPrecondition(
            f"the stored configuration of experiment {experiment_id} is not valid today, create a new experiment from a"
            f" corrected copy of it instead: {listing(problems)}"
        )


def check_entrypoint(config: Object) -> None:
    """Raise InvalidConfig when there is nothing to run; unmanaged experiments need no entrypoint."""
    if config.get("entrypoint") is None:
        raise InvalidConfig("managed experiments require entrypoint")


def check_search(config: Object) -> None:
    """Raise InvalidConfig for a search that cannot begin, or would begin with more trials than can be laid out."""
    try:
        check_size(config["searcher"], config["hyperparameters"])
    except (InvalidSearcher, InvalidSpace) as error:
        raise InvalidConfig(str(error)) from error


def _missing(config: Object) -> list[Problem]:
    problems = [missing(ROOT, key) for key in _EVENTUALLY_REQUIRED if config.get(key) is None]
    if (config.get("reproducibility") or {}).get("experiment_seed") is None:
        problems.append(missing(f"{ROOT}.reproducibility", "experiment_seed"))
    problems += storage.missing_parts(config.get("checkpoint_storage") or {}, f"{ROOT}.checkpoint_storage")
    chosen = config.get("searcher")
    if chosen is not None:
        required = ("name", "metric", *searcher.REQUIRED.get(chosen.get("name"), ()))
        problems += [missing(f"{ROOT}.searcher", key) for key in required if chosen.get(key) is None]
    return problems


def _disagreements(config: Object) -> list[Problem]:
    resources = config.get("resources") or {}
    slots, most = resources.get("slots_per_trial"), resources.get("max_slots")
    if slots is None or most is None or slots <= most:
        return []
    return [Problem(f"{ROOT}.resources", f"slots_per_trial ({slots}) must not be greater than max_slots ({most})")]
