"""Experiment configuration: reading, merging, completing and checking it, all of it pure.

A configuration is a plain dict of JSON values. ``parse_experiment_config`` brings what people write into normal form,
``merge`` puts one layer over another, ``with_defaults`` gives the form that is stored, and ``build_config`` runs the
whole pipeline. Shapes of parts that other tasks have too (environment, mounts, resources, log policies) are found in
the modules of those names in `parts`, written with the words of `libs.shapes`.

Source: docs/reference/experiments.md 1 and 2.1.
"""

from libs.config.build import build_config, continue_config, parse_template
from libs.config.checks import check_failed, check_task_pod_spec, failed_pod_checks
from libs.config.complete import check_complete, check_entrypoint, check_stored
from libs.config.config_policies import (
    apply_invariants,
    check_consistent,
    check_constraints,
    check_fallback_pools,
    check_max_slots_change,
    check_pool_change,
    check_priority_change,
    check_weight_change,
    parse_experiment_policies,
    parse_task_policies,
)
from libs.config.defaults import with_defaults
from libs.config.experiment import normalise_experiment_config, parse_experiment_config
from libs.config.merge import merge
from libs.config.names import random_name, three_words
from libs.config.parts.searcher import check_current_searcher
from libs.config.secrets import CREDENTIALS, MASK, check_unmasked, mask_credentials, mask_secrets
from libs.config.task_container_defaults import merge_task_container_defaults, task_container_defaults_as_config
from libs.config.yaml_text import InvalidText, parse_text
from libs.shapes.problems import InvalidConfig

__all__ = [
    "CREDENTIALS",
    "MASK",
    "InvalidConfig",
    "InvalidText",
    "apply_invariants",
    "build_config",
    "check_complete",
    "check_consistent",
    "check_constraints",
    "check_current_searcher",
    "check_entrypoint",
    "check_failed",
    "check_fallback_pools",
    "check_max_slots_change",
    "check_pool_change",
    "check_priority_change",
    "check_stored",
    "check_task_pod_spec",
    "check_unmasked",
    "check_weight_change",
    "continue_config",
    "failed_pod_checks",
    "mask_credentials",
    "mask_secrets",
    "merge",
    "merge_task_container_defaults",
    "normalise_experiment_config",
    "parse_experiment_config",
    "parse_experiment_policies",
    "parse_task_policies",
    "parse_template",
    "parse_text",
    "random_name",
    "task_container_defaults_as_config",
    "three_words",
    "with_defaults",
]
