"""The same patches through kubectl, whose merge is the one Kubernetes itself uses.

RESOLUTE_PODSPEC_CASES sets how many are compared (25, unless it is set).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from typing import Any

import pytest

from libs.podspec import merge_pod
from tests.unit.libs.podspec.pods import random_patch, random_pod

KUBECTL = shutil.which("kubectl")
CASES = int(os.environ.get("RESOLUTE_PODSPEC_CASES", "25"))

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")


def kubectl_patch(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    pod = {"apiVersion": "v1", "kind": "Pod", **base, "metadata": {"name": "pod", **base["metadata"]}}
    run = subprocess.run(
        [str(KUBECTL), "patch", "--local", "--type", "strategic", "-f", "-", "-p", json.dumps(patch), "-o", "json"],
        input=json.dumps(pod),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    patched: dict[str, Any] = json.loads(run.stdout)
    for added in ("apiVersion", "kind"):
        del patched[added]
    del patched["metadata"]["name"]
    return patched


@pytest.mark.parametrize("batch", range(-(-CASES // 25)))
def test_kubectl_arrives_at_the_same_pod(batch: int) -> None:
    for seed in range(25 * batch, min(25 * batch + 25, CASES)):
        rng = random.Random(seed)
        base = random_pod(rng)
        patch = random_patch(rng, base)
        # kubectl copies nulls and directives of new elements as they are; merging over nothing carries them out.
        theirs = merge_pod({}, kubectl_patch(base, patch))
        assert without_empty(merge_pod(base, patch)) == without_empty(theirs), (seed, base, patch)


def without_empty(value: Any) -> Any:
    """Empty objects and lists may be there or not: what kubectl prints of them follows the Go types."""
    if isinstance(value, dict):
        fields = {key: without_empty(element) for key, element in value.items()}
        return {key: element for key, element in fields.items() if element not in ({}, [])}
    return [without_empty(element) for element in value] if isinstance(value, list) else value
