"""The shape of an experiment configuration: what users, templates and policies may write.

Source: docs/reference/experiments.md 1.1, 1.2 and 1.3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from libs.config.parts.environment import environment
from libs.config.parts.hyperparameters import hyperparameters, ranges_without_count
from libs.config.parts.log_policies import log_policies
from libs.config.parts.mounts import bind_mounts
from libs.config.parts.resources import experiment_resources
from libs.config.parts.searcher import searcher
from libs.config.parts.storage import storage
from libs.config.yaml_text import InvalidText, parse_text
from libs.shapes.lengths import length
from libs.shapes.problems import ROOT, InvalidConfig, Problem, listing
from libs.shapes.shape import (
    MOST_COUNTED,
    Object,
    Read,
    anything,
    by_type,
    checked,
    converted,
    flag,
    list_of,
    map_of,
    one_of,
    record,
    text,
    whole,
)

LONGEST_LABEL: Final = 256
"""In characters. Labels are keys of what was used, which an index has to hold."""
_INVALID: Final = "version 0 experiment config is invalid: config is invalid: "


def _ends_after_it_begins(profiling: Object) -> str | None:
    begin, end = profiling.get("begin_on_batch"), profiling.get("end_after_batch")
    in_order = begin is None or end is None or begin <= end
    return None if in_order else "begin_on_batch must be less than end_after_batch"


def _distinct(labels: list[str]) -> list[str]:
    return list(dict.fromkeys(labels))


def overlong_label(labels: Iterable[str]) -> str | None:
    """What is wrong with the first label that is too long; None when none is."""
    for label in labels:
        if len(label) > LONGEST_LABEL:
            return f"a label must not have more than {LONGEST_LABEL} characters: {label[:20]!r}..."
    return None


def without_overlong_labels(config: Any) -> Any:
    """``config`` without the labels that are too long: of what was stored before there was a limit, they may stay."""
    labels = config.get("labels") if isinstance(config, dict) else None
    if not isinstance(labels, list):
        return config
    kept = [label for label in labels if not (isinstance(label, str) and len(label) > LONGEST_LABEL)]
    return {**config, "labels": kept}


_labels: Final = checked(
    by_type(array=converted(list_of(text), _distinct), object=converted(map_of(flag), list)), overlong_label
)
_profiling: Final = checked(
    record(
        {"enabled": flag, "begin_on_batch": whole(0), "end_after_batch": whole(0), "sync_timings": flag},
    ),
    _ends_after_it_begins,
)
_optimizations: Final = record(
    {
        "aggregation_frequency": whole(1),
        "auto_tune_tensor_fusion": flag,
        "average_aggregated_gradients": flag,
        "average_training_metrics": flag,
        "gradient_compression": flag,
        "grad_updates_size_file": text,
        "mixed_precision": one_of("O0", "O1", "O2", "O3"),
        "tensor_fusion_cycle_time": whole(0),
        "tensor_fusion_threshold": whole(0),
    }
)
_pachyderm: Final = record(
    {
        "pachd": record({"host": text, "port": whole()}, required=("host", "port")),
        "proxy": record({"scheme": text, "host": text, "port": whole()}, required=("scheme", "host", "port")),
        "dataset": record(
            {"project": text, "repo": text, "commit": text, "branch": text, "token": text},
            required=("project", "repo", "commit", "branch", "token"),
        ),
    },
    required=("pachd", "proxy", "dataset"),
)
_integrations: Final = record(
    {
        "pachyderm": _pachyderm,
        "webhooks": record({"webhook_id": list_of(whole()), "webhook_name": list_of(text), "exclude": flag}),
    }
)
_slurm: Final = record({"slots_per_node": whole(1), "gpu_type": text, "sbatch_args": list_of(text)})
_pbs: Final = record({"slots_per_node": whole(1), "pbsbatch_args": list_of(text)})

_experiment: Final = record(
    {
        "bind_mounts": bind_mounts,
        "checkpoint_policy": one_of("best", "all", "none"),
        "checkpoint_storage": storage,
        "data": map_of(anything),
        "debug": flag,
        "description": text,
        "entrypoint": by_type(string=text, array=list_of(text)),
        "environment": environment,
        "hyperparameters": hyperparameters,
        "integrations": _integrations,
        "labels": _labels,
        "log_policies": log_policies,
        "max_restarts": whole(0, MOST_COUNTED),
        "min_checkpoint_period": length(),
        "min_validation_period": length(),
        "name": text,
        "optimizations": _optimizations,
        "pbs": _pbs,
        "perform_initial_validation": flag,
        "preemption_timeout": whole(0, MOST_COUNTED),
        "profiling": _profiling,
        "project": text,
        "records_per_epoch": whole(0),
        "reproducibility": record({"experiment_seed": whole(0, 2**32 - 1)}),
        "resources": experiment_resources,
        "retention_policy": record({"log_retention_days": whole(-1, 32767)}, required=("log_retention_days",)),
        "scheduling_unit": whole(1),
        "searcher": searcher,
        "security": record({"kerberos": record({"config_file": text})}),
        "slurm": _slurm,
        "workspace": text,
    },
    ignored=("version", "data_layer", "tensorboard_storage", "internal"),
)


def parse_experiment_config(text: str, *, known_labels: Collection[str] = ()) -> Object:
    """Read YAML or JSON text: a partial configuration in normal form, without the nulls of optional fields.

    known_labels  those of the experiment that this is a copy of, which may be too long

    Parts that another layer has to add may be missing (complete.py). Raises InvalidConfig, with one line for every
    mistake.
    """
    try:
        value = parse_text(text)
    except InvalidText as error:
        raise InvalidConfig(str(error)) from error
    present = _labels_in(value)
    kept = [label for label in known_labels if len(label) > LONGEST_LABEL and label in present]
    if not kept:
        return normalise_experiment_config(value)
    config = normalise_experiment_config({**value, "labels": [label for label in present if label not in kept]})
    return {**config, "labels": [*config["labels"], *kept]}


def _labels_in(value: Any) -> list[Any]:
    labels = value.get("labels") if isinstance(value, dict) else None
    return list(labels) if isinstance(labels, list | dict) else []


def normalise_experiment_config(value: Any) -> Object:
    """Like ``parse_experiment_config``, for a configuration that is no text any more; ``value`` stays unchanged."""
    version = value.get("version") if isinstance(value, dict) else None
    if version is not None and (isinstance(version, bool) or version != 0):
        raise InvalidConfig(f"invalid version: {version}")
    config, problems = read_experiment_config(value)
    if problems:
        raise InvalidConfig(f"{_INVALID}{listing(problems)}")
    normal: Object = config
    return normal


def read_experiment_config(value: Any) -> Read:
    """The configuration in normal form, and everything that is wrong with it as far as it goes."""
    config, problems = _experiment(value, ROOT)
    if not problems:
        problems = tuple(_grid_problems(config))
    if isinstance(value, dict) and value.get("internal") is not None:
        problems = (*problems, Problem(f"{ROOT}.internal", "must be null"))
    return Read(config, problems)


def _grid_problems(config: Object) -> list[Problem]:
    if config.get("searcher", {}).get("name") != "grid":
        return []
    return ranges_without_count(config.get("hyperparameters", {}), f"{ROOT}.hyperparameters")
