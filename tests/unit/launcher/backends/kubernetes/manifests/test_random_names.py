"""What is made for a task has names that nobody else can guess, and Jobs keep those that users know."""

from __future__ import annotations

import json
import re

import msgspec

from libs.events.orders import Environment, Order
from libs.ids import new_random_part
from services.launcher.backends.kubernetes.manifests.task_objects import Manifests, manifests
from tests.unit.launcher.backends.kubernetes.builders import traits
from tests.unit.launcher.specs import task

SPEC = task(environment=Environment(image="i", registry_auth={"username": "u", "password": "p"}))
ORDER = Order(allocation="1.x.1", pool="default", desired="run", spec=SPEC)


def made(random_part: str) -> Manifests:
    return manifests(msgspec.structs.replace(ORDER, random_part=random_part), traits())


def names(of: Manifests) -> list[str]:
    return [each["metadata"]["name"] for each in (*of.secrets, of.config_map)]


def test_secrets_and_config_maps_end_with_the_random_part_of_the_order() -> None:
    part = new_random_part()
    job = made(part).name
    assert names(made(part)) == [f"{job}-{part}", f"{job}-{part}-registry", f"{job}-{part}"]
    assert len({new_random_part() for _ in range(100)}) == 100


def test_the_same_order_makes_the_same_objects() -> None:
    part = new_random_part()
    assert made(part) == made(part)
    assert made(part).made_of != made(new_random_part()).made_of, "what another order began is told apart"


def test_the_pod_refers_to_no_other_names() -> None:
    part = new_random_part()
    of = made(part)
    text = json.dumps(of.job["spec"]["template"]["spec"])
    referred = set(re.findall(r'"(?:name|secretName)": "(det-[^"]*)"', text)) - {
        volume["name"] for volume in of.job["spec"]["template"]["spec"]["volumes"]
    }
    assert referred == set(names(of))


def test_an_order_without_a_random_part_keeps_the_old_names() -> None:
    job = made("").name
    assert names(made("")) == [job, f"{job}-registry", job]


def test_jobs_keep_their_name_and_their_config_map_names_them() -> None:
    of = made(new_random_part())
    assert of.name == made("").name
    assert of.config_map["metadata"]["labels"]["batch.kubernetes.io/job-name"] == of.name
