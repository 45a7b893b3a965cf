"""What users wrote of a pod, judged again where the pod is made."""

from __future__ import annotations

import re
from contextlib import nullcontext
from operator import attrgetter
from typing import Any

import pytest
from msgspec import Struct

from libs.cluster.config import SecurityConfig
from libs.errors import InvalidRequest
from libs.events.orders import Environment, UsersPod
from libs.podspec import NodeRules
from tests.unit.launcher.backends.kubernetes.builders import build
from tests.unit.launcher.specs import task, trial

Json = dict[str, Any]

SECRET: Json = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "resolute-generated-det"}}]}}
OUT: Json = {"spec": {"hostPID": True}}
BESIDE = SecurityConfig(release_namespace="ns1", references=("Secret/registry", "PersistentVolumeClaim/data-*"))
BASELINE = NodeRules(level="baseline")


class Case(Struct, frozen=True, kw_only=True):
    name: str
    users: UsersPod | None
    security: SecurityConfig = BESIDE
    rules: NodeRules | None = None
    refused: str = ""


CASES = [
    Case(
        name="a reference beside the release",
        users=UsersPod(pod=SECRET),
        refused="environment.pod_spec.spec.volumes[0].secret.secretName refers to Secret/resolute-generated-det in the "
        "namespace ns1, where the services of this installation run; security.references can allow it",
    ),
    Case(name="elsewhere", users=UsersPod(pod=SECRET), security=SecurityConfig(release_namespace="det")),
    Case(name="without a release", users=UsersPod(pod=SECRET), security=SecurityConfig()),
    Case(name="of the administrator", users=UsersPod()),
    Case(name="of a release before", users=None),
    Case(name="allowed", users=UsersPod(pod={"spec": {"imagePullSecrets": [{"name": "registry"}]}})),
    Case(name="accepted under another level", users=UsersPod(pod=OUT), rules=BASELINE),
    Case(
        name="never judged",
        users=UsersPod(pod=OUT, judged=False),
        rules=BASELINE,
        refused="environment.pod_spec.spec.hostPID shares a namespace of the node; "
        "security.pod_fields can allow spec.hostPID",
    ),
    Case(name="never judged, and nothing is", users=UsersPod(pod=OUT, judged=False)),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_what_users_wrote_is_judged_where_the_pod_is_made(case: Case) -> None:
    # What all layers say together is no matter of the rules: the administrator's part is in it.
    whole = Environment(image="i", pod_spec={"spec": {**SECRET["spec"], **OUT["spec"]}})
    for spec in (task(environment=whole, users_pod=case.users), trial(environment=whole, users_pod=case.users)):
        expected = (
            pytest.raises(InvalidRequest, match=f"^{re.escape(case.refused)}$") if case.refused else nullcontext()
        )
        with expected:
            build(spec, security=case.security, node_rules=case.rules)
