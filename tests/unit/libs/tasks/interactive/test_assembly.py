"""Layers of configuration: the rules and examples of docs/reference/tasks-and-cli.md 2.3 to 2.6."""

from __future__ import annotations

import copy
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from libs.cluster.config import TaskContainerDefaults
from libs.config.defaults import CPU_IMAGE, CUDA_IMAGE, ROCM_IMAGE
from libs.errors import InvalidRequest
from libs.tasks.interactive.assembly import Layers, PoolRequest, assemble, requested
from libs.tasks.interactive.defaults import default_config
from libs.tasks.interactive.layers import read_submitted, read_template
from libs.tasks.interactive.overlay import overlay

Object = dict[str, Any]


def layers(template: Object | None = None, submitted: Object | None = None) -> Layers:
    return Layers(read_template("t", template or {}), read_submitted(submitted or {}))


def built(
    template: Object | None = None,
    submitted: Object | None = None,
    *,
    defaults: Object | None = None,
    has_files: bool = False,
) -> Object:
    both = layers(template, submitted)
    slots, pool = requested(both)
    return assemble(
        both,
        defaults=TaskContainerDefaults(**(defaults or {})),
        granted=PoolRequest(slots, pool or "pool"),
        default_priority=42,
        has_files=has_files,
    )


def test_configuration_of_nothing_has_the_defaults_in_the_form_that_clients_see() -> None:
    assert built() == {
        "description": "",
        "bind_mounts": None,
        "environment": {
            "image": {"cpu": CPU_IMAGE, "cuda": CUDA_IMAGE, "rocm": ROCM_IMAGE},
            "environment_variables": {},
            "proxy_ports": None,
            "ports": None,
            "force_pull_image": False,
            "pod_spec": None,
            "add_capabilities": None,
            "drop_capabilities": None,
        },
        "resources": {
            "slots": 1,
            "weight": 1,
            "resource_pool": "pool",
            "priority": 42,
            "is_single_node": None,
            "devices": None,
        },
        "entrypoint": [],
        "idle_timeout": None,
        "notebook_idle_type": "kernels_or_terminals",
        "work_dir": None,
        "debug": False,
        "pbs": {},
        "slurm": {},
    }


def env(**section: Any) -> Object:
    return {"environment": section}


def mount(host: str, container: str) -> Object:
    return {"host_path": host, "container_path": container}


class Case(Struct):
    name: str
    expected: Any
    path: str
    template: Object = {}
    submitted: Object = {}
    defaults: Object = {}


CASES = [
    Case(
        name="variables are appended per type of slot",
        defaults={"environment_variables": ["A=1"]},
        template=env(environment_variables=["B=2"]),
        submitted=env(environment_variables={"cpu": ["C=3"]}),
        path="environment.environment_variables",
        expected={"cpu": ["A=1", "B=2", "C=3"], "cuda": ["A=1", "B=2"], "rocm": ["A=1", "B=2"]},
    ),
    Case(
        name="a variable without a value is accepted",
        submitted=env(environment_variables={"gpu": ["A"]}),
        path="environment.environment_variables",
        expected={"cuda": ["A"]},
    ),
    Case(
        name="a mount takes the place of one with its container path",
        defaults={"bind_mounts": [mount("/a", "/x"), mount("/b", "/y")]},
        submitted={"bind_mounts": [{**mount("/c", "/x"), "read_only": True, "unknown": 1}]},
        path="bind_mounts",
        expected=[
            {**mount("/c", "/x"), "read_only": True, "propagation": "rprivate"},
            {**mount("/b", "/y"), "read_only": False, "propagation": "rprivate"},
        ],
    ),
    Case(
        name="an image for one type of slot leaves the others",
        defaults={"image": {"cpu": "p", "cuda": "q", "rocm": "r"}},
        submitted=env(image={"cuda": "g"}),
        path="environment.image",
        expected={"cpu": "p", "cuda": "g", "rocm": "r"},
    ),
    Case(
        name="an image of the cluster for one type of slot leaves the others",
        defaults={"image": {"cuda": "q"}},
        path="environment.image",
        expected={"cpu": CPU_IMAGE, "cuda": "q", "rocm": ROCM_IMAGE},
    ),
    Case(
        name="one image is for all",
        template=env(image="img"),
        path="environment.image",
        expected={"cpu": "img", "cuda": "img", "rocm": "img"},
    ),
    Case(name="slots of a template count", template={"resources": {"slots": 0}}, path="resources.slots", expected=0),
    Case(
        name="slots of the user win",
        template={"resources": {"slots": 0}},
        submitted={"resources": {"slots": 2}},
        path="resources.slots",
        expected=2,
    ),
    Case(
        name="the pool of a template counts",
        template={"resources": {"resource_pool": "big"}},
        path="resources.resource_pool",
        expected="big",
    ),
    Case(
        name="null clears a time-out",
        template={"description": "t", "idle_timeout": "1h"},
        submitted={"idle_timeout": None, "description": None},
        path="idle_timeout",
        expected=None,
    ),
    Case(
        name="null leaves text as it is",
        template={"description": "t", "idle_timeout": "1h"},
        submitted={"idle_timeout": None, "description": None},
        path="description",
        expected="t",
    ),
    Case(
        name="null leaves a section as it is",
        template={"resources": {"weight": 2.5}},
        submitted={"resources": None},
        path="resources.weight",
        expected=2.5,
    ),
    Case(
        name="durations get their normal form", submitted={"idle_timeout": "90s"}, path="idle_timeout", expected="1m30s"
    ),
    Case(
        name="plain lists are replaced",
        template={"entrypoint": ["a", "b"]},
        submitted={"entrypoint": ["c"]},
        path="entrypoint",
        expected=["c"],
    ),
    Case(
        name="null clears a list",
        template=env(proxy_ports=[{"proxy_port": 80}]),
        submitted=env(proxy_ports=None),
        path="environment.proxy_ports",
        expected=None,
    ),
    Case(
        name="proxied ports are complete",
        submitted=env(proxy_ports=[{"proxy_port": 80, "proxy_tcp": True}]),
        path="environment.proxy_ports",
        expected=[{"proxy_port": 80, "proxy_tcp": True, "unauthenticated": False, "default_service_id": False}],
    ),
    Case(name="ports are ignored", submitted=env(ports={"x": 80}), path="environment.ports", expected=None),
    Case(
        name="a registry login merges key by key",
        defaults={"registry_auth": {"username": "u", "password": None}},
        submitted=env(registry_auth={"password": "p", "server": "s"}),
        path="environment.registry_auth",
        expected={"username": "u", "password": "p", "serveraddress": "s"},
    ),
    Case(
        name="sizes have units",
        submitted={"resources": {"shm_size": "1.5g"}},
        path="resources.shm_size",
        expected=1610612736,
    ),
    Case(
        name="sizes are numbers",
        submitted={"resources": {"shm_size": 24576}},
        path="resources.shm_size",
        expected=24576,
    ),
    Case(
        name="devices are text or objects",
        defaults={"devices": ["/dev/a:/dev/b"]},
        submitted={"resources": {"devices": [{"host_path": "/dev/c", "container_path": "/dev/d", "x": 1}]}},
        path="resources.devices",
        expected=[
            {"host_path": "/dev/c", "container_path": "/dev/d", "mode": "mrw"},
            {"host_path": "/dev/a", "container_path": "/dev/b", "mode": "mrw"},
        ],
    ),
    Case(
        name="maps are united",
        template={"slurm": {"a": 1, "b": 1}},
        submitted={"slurm": {"b": 2}},
        path="slurm",
        expected={"a": 1, "b": 2},
    ),
    Case(
        name="pod specs of user and template replace lists, and both are merged into that of the cluster",
        defaults={"gpu_pod_spec": {"spec": {"imagePullSecrets": [{"name": "c"}], "hostname": "h"}}},
        template=env(pod_spec={"spec": {"imagePullSecrets": [{"name": "t"}], "priorityClassName": "p"}}),
        submitted=env(pod_spec={"spec": {"imagePullSecrets": [{"name": "u"}]}}),
        path="environment.pod_spec",
        expected={
            "spec": {"imagePullSecrets": [{"name": "u"}, {"name": "c"}], "priorityClassName": "p", "hostname": "h"}
        },
    ),
    Case(
        name="tasks without slots have the pod spec for them",
        defaults={"gpu_pod_spec": {"spec": {"hostname": "g"}}, "cpu_pod_spec": {"spec": {"hostname": "c"}}},
        submitted={"resources": {"slots": 0}},
        path="environment.pod_spec",
        expected={"spec": {"hostname": "c"}},
    ),
    Case(
        name="fields that a template has for experiments do not matter",
        template={"hyperparameters": {"x": 1}, "resources": {"slots_per_trial": 8}, "environment": {"x": 1}},
        path="resources.slots",
        expected=1,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_layers(case: Case) -> None:
    found: Any = built(case.template, case.submitted, defaults=case.defaults)
    for key in case.path.split("."):
        found = found[key]
    assert found == case.expected


def test_optional_resources_are_shown_when_somebody_asked_for_them() -> None:
    asked = {"max_slots": 3, "native_parallel": True, "shm_size": 1}
    assert built(submitted={"resources": asked})["resources"].items() >= asked.items()


_NAMES = st.sampled_from(["a", "b", "c"])
_ENVIRONMENT = st.fixed_dictionaries(
    {},
    optional={
        "image": st.one_of(_NAMES, st.dictionaries(st.sampled_from(["cpu", "cuda", "rocm"]), _NAMES)),
        "environment_variables": st.one_of(st.lists(_NAMES), st.dictionaries(st.just("cpu"), st.lists(_NAMES))),
        "proxy_ports": st.one_of(st.none(), st.lists(st.builds(lambda n: {"proxy_port": n}, st.integers(1, 9)))),
        "pod_spec": st.dictionaries(
            st.just("spec"), st.dictionaries(st.sampled_from(["hostname", "subdomain"]), st.none() | _NAMES)
        ),
    },
)
_CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "description": st.none() | _NAMES,
        "entrypoint": st.none() | st.lists(_NAMES),
        "idle_timeout": st.sampled_from([None, "1m", "2h"]),
        "bind_mounts": st.lists(st.builds(lambda h, c: mount(f"/{h}", f"/{c}"), _NAMES, _NAMES), max_size=3),
        "environment": st.none() | _ENVIRONMENT,
        "resources": st.none() | st.fixed_dictionaries({}, optional={"slots": st.integers(0, 3)}),
        "slurm": st.dictionaries(_NAMES, st.integers(0, 1)),
    },
)


@given(one=_CONFIGS, other=_CONFIGS, third=_CONFIGS)
def test_layers_may_be_merged_in_any_grouping_and_stay_as_they_are(one: Object, other: Object, third: Object) -> None:
    low, middle, high = (read_submitted(config) for config in (one, other, third))
    before = copy.deepcopy((low, middle, high))
    base = default_config(TaskContainerDefaults())
    step_by_step = overlay(overlay(overlay(base, low), middle), high)
    assert (low, middle, high) == before
    assert overlay(overlay(base, low), overlay(middle, high)) == step_by_step
    assert overlay(step_by_step, {}) == step_by_step


WORK_DIRS = [
    pytest.param("/w", {}, {}, None, id="that of the cluster gives way"),
    pytest.param("/w", {"work_dir": "/t"}, {}, None, id="that of a template gives way"),
    pytest.param("/w", {}, {"work_dir": "/w"}, None, id="the same gives way"),
    pytest.param("/w", {}, {"work_dir": None}, None, id="none is no choice"),
]


@pytest.mark.parametrize(("default", "template", "submitted", "expected"), WORK_DIRS)
def test_files_go_to_the_usual_place(default: str, template: Object, submitted: Object, expected: None) -> None:
    assert built(template, submitted, defaults={"work_dir": default}, has_files=True)["work_dir"] == expected
    assert built(template, {}, defaults={"work_dir": default})["work_dir"] == template.get("work_dir", default)


def test_files_cannot_go_to_a_directory_of_choice() -> None:
    with pytest.raises(InvalidRequest, match=r"^cannot set work_dir and context directory at the same time$"):
        built(submitted={"work_dir": "/mine"}, has_files=True)


POD_FIELD, POD_SPEC = "json: unknown field", "environment.pod_spec.spec"
UNKNOWN = [
    ({"x": 1}, 'json: unknown field "x"'),
    (env(x=1), 'json: unknown field "x" in environment'),
    ({"resources": {"slots_per_trial": 1}}, 'json: unknown field "slots_per_trial" in resources'),
    (env(proxy_ports=[{"proxy_port": 1, "x": 1}]), 'json: unknown field "x" in environment.proxy_ports[0]'),
    (env(registry_auth={"x": 1}), 'json: unknown field "x" in environment.registry_auth'),
    (env(pod_spec={"specs": {}}), 'json: unknown field "specs" in environment.pod_spec'),
    (env(pod_spec={"spec": {"tolerations": [{}, {"Key": ""}]}}), f'{POD_FIELD} "Key" in {POD_SPEC}.tolerations[1]'),
    (env(pod_spec={"spec": {"volumes": [{"$patch": "delete"}]}}), f'{POD_FIELD} "$patch" in {POD_SPEC}.volumes[0]'),
]


@pytest.mark.parametrize(("config", "says"), UNKNOWN, ids=[says for _, says in UNKNOWN])
def test_unknown_fields_are_refused_of_users_and_passed_over_in_templates(config: Object, says: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_submitted(config)
    assert str(caught.value).startswith("unable to decode the merged config: {")
    assert str(caught.value).endswith(f"}}: {says}")
    read_template("t", config)


def test_the_affinity_of_the_old_documentation_is_taken_as_in_experiments() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    config = env(pod_spec={"spec": {"affinity": {"nodeSelectorTerms": terms}}})
    assert read_submitted(config)["environment"]["pod_spec"] == config["environment"]["pod_spec"]
    with pytest.raises(InvalidRequest, match='unknown field "nodeSelectorTerms"'):
        read_submitted(env(pod_spec={"spec": {"nodeSelectorTerms": terms}}))


WRONG = [
    ({"entrypoint": "echo"}, "config.entrypoint: expected array, but got string"),
    ({"idle_timeout": 600}, "config.idle_timeout: expected string, but got integer"),
    ({"idle_timeout": "soon"}, 'config.idle_timeout: invalid duration "soon"'),
    ({"resources": {"slots": "2"}}, "config.resources.slots: expected integer, but got string"),
    ({"resources": {"slots": 1e30}}, "config.resources.slots: must be <= 2147483647"),
    ({"resources": {"shm_size": "big"}}, "config.resources.shm_size: must be a valid memory size"),
    ({"resources": {"devices": ["/dev/a"]}}, "config.resources.devices[0]: a device must look like"),
    ({"bind_mounts": [{"host_path": "/a"}]}, "config.bind_mounts[0]: container_path is a required property"),
    (env(image=1), "config.environment.image: expected string or object, but got integer"),
    (env(environment_variables=[1]), "config.environment.environment_variables[0]: expected string"),
    (env(proxy_ports=[{"proxy_port": 0}]), "config.environment.proxy_ports[0].proxy_port: must be >= 1"),
    (env(pod_spec={"spec": []}), "config.environment.pod_spec.spec: expected object, but got array"),
    ({"environment": []}, "config.environment: expected object, but got array"),
]


@pytest.mark.parametrize(("config", "says"), WRONG, ids=[says for _, says in WRONG])
def test_wrong_types_are_named(config: Object, says: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_submitted(config)
    assert f": {says}" in str(caught.value)
    with pytest.raises(InvalidRequest, match=r"^template 't': config"):
        read_template("t", config)


def test_a_long_configuration_is_not_repeated_whole() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_submitted({"x": "y" * 100_000})
    assert len(str(caught.value)) < 11_000
