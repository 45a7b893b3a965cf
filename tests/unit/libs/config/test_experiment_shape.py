"""What an experiment configuration may say, field by field, and in which form it is kept."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from libs.config import InvalidConfig, parse_experiment_config
from libs.shapes.problems import ROOT
from libs.shapes.sizes import size_bytes

NORMAL_FORMS: list[tuple[str, Any]] = [
    ("{}", {}),
    ("version: 0", {}),
    ("{data_layer: 1, tensorboard_storage: {a: b}, internal: null}", {}),
    ("{description: null, max_restarts: null, searcher: null}", {}),
    ("entrypoint: python3 train.py", {"entrypoint": "python3 train.py"}),
    ("entrypoint: [python3, -m, x]", {"entrypoint": ["python3", "-m", "x"]}),
    ("debug: yes", {"debug": True}),
    ("max_restarts: 2.0", {"max_restarts": 2}),
    ("labels: [b, a, b]", {"labels": ["b", "a"]}),
    (f"labels: [{'l' * 256}]", {"labels": ["l" * 256]}),
    ("labels: {b: true, a: true, c: false}", {"labels": ["b", "a", "c"]}),
    ("data: {url: x, nothing: null}", {"data": {"url": "x", "nothing": None}}),
    ("min_validation_period: {batches: 1}", {"min_validation_period": {"batches": 1}}),
    ("min_validation_period: {batches: 0}", {"min_validation_period": {"batches": 0}}),
    ("profiling: {begin_on_batch: 10, end_after_batch: 10}", None),
    ("retention_policy: {log_retention_days: -1}", None),
    ("security: {kerberos: {config_file: f}}", None),
    ("slurm: {slots_per_node: 1, gpu_type: a, sbatch_args: [x]}", None),
    ("pbs: {slots_per_node: 1, pbsbatch_args: [x]}", None),
    ("reproducibility: {experiment_seed: 4294967295}", None),
    ("integrations: {webhooks: {webhook_id: [1], webhook_name: [n], exclude: true}}", None),
    (
        "bind_mounts: [{host_path: /a, container_path: b}]",
        {"bind_mounts": [{"host_path": "/a", "container_path": "b", "read_only": False, "propagation": "rprivate"}]},
    ),
    ("environment: {image: x}", {"environment": {"image": {"cpu": "x", "cuda": "x", "rocm": "x"}}}),
    ("environment: {image: {gpu: x}}", {"environment": {"image": {"cuda": "x"}}}),
    ("environment: {image: {gpu: x, cuda: y}}", {"environment": {"image": {"cuda": "y"}}}),
    (
        "environment: {environment_variables: [A=1]}",
        {"environment": {"environment_variables": {"cpu": ["A=1"], "cuda": ["A=1"], "rocm": ["A=1"]}}},
    ),
    (
        "environment: {environment_variables: {gpu: [A], cpu: [B=2]}}",
        {"environment": {"environment_variables": {"cuda": ["A"], "cpu": ["B=2"]}}},
    ),
    (
        "environment: {proxy_ports: [{proxy_port: 80}]}",
        {
            "environment": {
                "proxy_ports": [
                    {"proxy_port": 80, "proxy_tcp": False, "unauthenticated": False, "default_service_id": False}
                ]
            }
        },
    ),
    ("environment: {registry_auth: {username: u, identitytoken: t}}", None),
    ("environment: {ports: {x: 80}}", None),
    ("environment: {pod_spec: {spec: {tolerations: null, unknown: [1]}}}", None),
    (
        "resources: {devices: ['/h:/c', '/h:/d:rw', {host_path: /h, container_path: /e}], agent_label: x}",
        {
            "resources": {
                "devices": [
                    {"host_path": "/h", "container_path": "/c", "mode": "mrw"},
                    {"host_path": "/h", "container_path": "/d", "mode": "rw"},
                    {"host_path": "/h", "container_path": "/e", "mode": "mrw"},
                ]
            }
        },
    ),
    ("resources: {shm_size: 1.5 gb}", {"resources": {"shm_size": 1610612736}}),
    (
        "resources: {topology: {required: example.com/rack, preferred: null}}",
        {"resources": {"topology": {"required": "example.com/rack"}}},
    ),
    ("resources: {shm_size: 4096}", {"resources": {"shm_size": 4096}}),
    ("log_policies: [{name: n}]", None),
    ("log_policies: [{name: n, pattern: p}]", None),
    ("log_policies: [{pattern: p, action: cancel_retries}]", None),
    (
        "log_policies: [{pattern: p, action: {type: exclude_node}}]",
        {"log_policies": [{"pattern": "p", "action": "exclude_node"}]},
    ),
    ("searcher: {name: single, max_length: 100}", None),
    ("searcher: {name: single, max_length: {epochs: 1}}", None),
    ("searcher: {name: random, max_trials: 3, max_concurrent_trials: 0}", None),
    (
        "searcher: {name: adaptive_asha, stop_once: true, mode: standard, bracket_rungs: [1]}",
        {"searcher": {"name": "adaptive_asha", "mode": "standard", "bracket_rungs": [1]}},
    ),
    ("searcher: {name: sync_halving, num_rungs: 1, budget: {batches: 1}}", None),
    ("searcher: {metric: loss}", None),
    ("checkpoint_storage: {save_trial_best: 2}", None),
]


@pytest.mark.parametrize(("text", "normal"), NORMAL_FORMS, ids=[text for text, _ in NORMAL_FORMS])
def test_configuration_is_accepted_and_normalised(text: str, normal: Any) -> None:
    expected = normal if normal is not None else yaml.safe_load(text)
    assert parse_experiment_config(text) == expected


PROBLEMS = [
    ("x: 1", f'{ROOT}: additionalProperties "x" not allowed'),
    ("environment: {x: null}", f'{ROOT}.environment: additionalProperties "x" not allowed'),
    ("resources: {slots: 1}", f'{ROOT}.resources: additionalProperties "slots" not allowed'),
    ("searcher: {name: single, max_trials: 1}", f'{ROOT}.searcher: additionalProperties "max_trials" not allowed'),
    ("searcher: {max_trials: 1}", f'{ROOT}.searcher: additionalProperties "max_trials" not allowed'),
    ("[]", f"{ROOT}: expected object, but got array"),
    ("internal: {}", f"{ROOT}.internal: must be null"),
    ("name: 1", f"{ROOT}.name: expected string, but got integer"),
    ("debug: 1", f"{ROOT}.debug: expected boolean, but got integer"),
    (
        f"labels: [{'l' * 257}]",
        f"{ROOT}.labels: a label must not have more than 256 characters: 'llllllllllllllllllll'...",
    ),
    ("max_restarts: true", f"{ROOT}.max_restarts: expected integer, but got boolean"),
    ("max_restarts: -1", f"{ROOT}.max_restarts: must be >= 0 but found -1"),
    ("max_restarts: 2147483648", f"{ROOT}.max_restarts: must be <= 2147483647 but found 2147483648"),
    ("max_restarts: 1.5", f"{ROOT}.max_restarts: expected integer, but got number"),
    ("entrypoint: {a: b}", f"{ROOT}.entrypoint: expected string or array, but got object"),
    ("entrypoint: [a, 1]", f"{ROOT}.entrypoint[1]: expected string, but got integer"),
    ("checkpoint_policy: some", f'{ROOT}.checkpoint_policy: value must be one of "best", "all", "none"'),
    ("preemption_timeout: 2147483648", f"{ROOT}.preemption_timeout: must be <= 2147483647 but found 2147483648"),
    ("resources: {max_slots: 2147483648}", f"{ROOT}.resources.max_slots: must be <= 2147483647"),
    ("resources: {slots_per_trial: 2147483648}", f"{ROOT}.resources.slots_per_trial: must be <= 2147483647"),
    ("scheduling_unit: 0", f"{ROOT}.scheduling_unit: must be >= 1 but found 0"),
    ("optimizations: {mixed_precision: O4}", f"{ROOT}.optimizations.mixed_precision: value must be one of"),
    ("optimizations: {aggregation_frequency: 0}", "must be >= 1"),
    ("reproducibility: {experiment_seed: 4294967296}", "must be <= 4294967295 but found 4294967296"),
    ("reproducibility: {experiment_seed: -1}", "must be >= 0"),
    ("retention_policy: {}", f"{ROOT}.retention_policy: log_retention_days is a required property"),
    ("retention_policy: {log_retention_days: 32768}", "must be <= 32767"),
    ("retention_policy: {log_retention_days: -2}", "must be >= -1"),
    ("integrations: {pachyderm: {pachd: {host: h}}}", f"{ROOT}.integrations.pachyderm.pachd: port is a required"),
    ("profiling: {begin_on_batch: 100, end_after_batch: 1}", "begin_on_batch must be less than end_after_batch"),
    *(
        (f"min_checkpoint_period: {value}", message)
        for value, message in [
            ("{batches: -1}", f"{ROOT}.min_checkpoint_period.batches: must be >= 0"),
            ("{}", 'a length object must have one attribute named "batches", "records", or "epochs"'),
            ("{batches: 1, records: 1}", "a length object must have one attribute"),
            ("{batches: null}", "a length object must have one attribute"),
            ("5", "a length object must have one attribute"),
            ("{batches: 1, x: 1}", 'additionalProperties "x" not allowed'),
        ]
    ),
    ("searcher: {name: single, max_length: {batches: 0}}", f"{ROOT}.searcher.max_length.batches: must be >= 1"),
    ("searcher: {name: single, max_length: -1}", f"{ROOT}.searcher.max_length: must be >= 0"),
    ("bind_mounts: [{host_path: a, container_path: b}]", "host_path must be an absolute path"),
    ("bind_mounts: [{host_path: /a, container_path: .}]", 'container_path must not be "."'),
    ("bind_mounts: [{host_path: /a}]", f"{ROOT}.bind_mounts[0]: container_path is a required property"),
    ("resources: {devices: ['/h']}", f"{ROOT}.resources.devices[0]: a device must look like"),
    ("resources: {devices: ['/h:/c:x']}", "a device must look like"),
    ("resources: {devices: [1]}", "expected string or object, but got integer"),
    ("resources: {shm_size: giga}", f"{ROOT}.resources.shm_size: must be a valid memory size"),
    ("resources: {shm_size: [1]}", "must be a valid memory size"),
    ("resources: {topology: {rack: a}}", f'{ROOT}.resources.topology: additionalProperties "rack" not allowed'),
    (
        "resources: {topology: {}}",
        f"{ROOT}.resources.topology: must name one level, either as preferred or as required",
    ),
    ("resources: {topology: {preferred: a, required: b}}", f"{ROOT}.resources.topology: must name one level"),
    ("resources: {topology: {required: ''}}", f"{ROOT}.resources.topology: must name one level"),
    ("resources: {slots_per_trial: -1}", "must be >= 0"),
    ("resources: {priority: 0}", "must be >= 1"),
    ("resources: {priority: 100}", "must be <= 99"),
    ("resources: {weight: 0}", "must be > 0"),
    ("environment: {image: [a]}", f"{ROOT}.environment.image: expected string or object, but got array"),
    ("environment: {proxy_ports: [{}]}", "proxy_port is a required property"),
    ("environment: {registry_auth: {server: x}}", 'additionalProperties "server" not allowed'),
    ("environment: {ports: {a: b}}", f"{ROOT}.environment.ports.a: expected integer"),
    ("environment: {pod_spec: []}", f"{ROOT}.environment.pod_spec: expected object"),
    ("environment: {pod_spec: {spec: []}}", f"{ROOT}.environment.pod_spec.spec: expected object"),
    ("environment: {pod_spec: {spec: {containers: {}}}}", "pod_spec.spec.containers: expected array"),
    ("environment: {pod_spec: {spec: {volumes: [1]}}}", "pod_spec.spec.volumes[0]: expected object"),
    (
        "environment: {pod_spec: {spec: {containers: [{name: side, security_context: {}}, "
        "{name: determined-container, security_context: {}}]}}}",
        f"{ROOT}.environment.pod_spec.spec.containers[1]: container SecurityContext is not configurable",
    ),
    ("log_policies: [{}]", f'{ROOT}.log_policies[0]: "name" must be set, and "pattern" is also required unless'),
    ("log_policies: [{pattern: p}]", '"name" must be set'),
    ("log_policies: [{name: n, pattern: 'assert (0 <='}]", "invalid regular expression: missing )"),
    ("log_policies: [{name: n, action: x}]", 'must be one of "cancel_retries" or "exclude_node"'),
    ("log_policies: [{name: n, action: {type: x}}]", 'must be one of "cancel_retries" or "exclude_node"'),
    ("log_policies: [{name: n, regex: x}]", 'additionalProperties "regex" not allowed'),
    ("log_policies: [{name: x}, {name: y}, {name: x}]", 'log_policies have duplicated names "x"'),
    ("searcher: {name: bogus}", f"{ROOT}.searcher: is not an object where object[\"name\"] is one of 'single', "),
    ("searcher: {name: random, max_trials: 0}", "must be >= 1"),
    ("searcher: {name: adaptive_asha, divisor: 1}", "must be > 1"),
    ("searcher: {name: adaptive_asha, mode: x}", "value must be one of"),
    ("checkpoint_storage: {type: hdfs}", f'{ROOT}.checkpoint_storage: is not an object where object["type"]'),
    ("checkpoint_storage: {type: s3, save_trial_best: -1}", "must be >= 0"),
]


@pytest.mark.parametrize(("text", "message"), PROBLEMS, ids=[text for text, _ in PROBLEMS])
def test_mistake_is_reported_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_experiment_config(text)
    assert message in str(caught.value)


def test_all_mistakes_come_at_once_sorted_one_per_line() -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_experiment_config("{x: 1, name: 2, bind_mounts: [{}]}")
    assert str(caught.value) == (
        "invalid experiment configuration: version 0 experiment config is invalid: config is invalid: "
        "<config>.bind_mounts[0]: container_path is a required property\n"
        "<config>.bind_mounts[0]: host_path is a required property\n"
        "<config>.name: expected string, but got integer\n"
        '<config>: additionalProperties "x" not allowed'
    )


def test_other_versions_are_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"^invalid experiment configuration: invalid version: 1$"):
        parse_experiment_config("version: 1")


def test_bad_yaml_is_one_line_with_a_place() -> None:
    with pytest.raises(InvalidConfig, match=r"^invalid experiment configuration: invalid YAML: line 2, column 4: .*$"):
        parse_experiment_config("a: 1\nb: ]")


SIZES = [
    ("1", 1),
    ("1219021 b", 1219021),
    ("1219021b", 1219021),
    ("1k", 1024),
    ("1 kb", 1024),
    ("1KiB", 1024),
    ("1.5 gb", 1610612736),
    ("1.5g", 1610612736),
    (".5M", 524288),
    ("128M", 134217728),
    ("2t", 2199023255552),
    ("1p", 1125899906842624),
    ("0.1k", 102),
    ("giga", None),
    ("1.gb", None),
    ("1 gi", None),
    ("1 i", None),
    ("", None),
    ("-1", None),
    ("1  gb", None),
    ("1 gb\n", None),
    ("1e3", None),
    ("\u0661", None),
]


@pytest.mark.parametrize(("text", "size"), SIZES, ids=[repr(text) for text, _ in SIZES])
def test_sizes_are_read_with_binary_multiples(text: str, size: int | None) -> None:
    assert size_bytes(text) == size
