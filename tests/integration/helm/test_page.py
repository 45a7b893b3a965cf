"""The built page that the api serves: out of another image, or of a volume."""

from __future__ import annotations

from typing import Any

import yaml

from tests.harness.helm import Release
from tests.integration.helm.conftest import Rendered

NAME = "determined-master-deployment"


def pod_of(release: Release) -> dict[str, Any]:
    spec: dict[str, Any] = release.get("Deployment", NAME)["spec"]["template"]["spec"]
    return spec


def web_of(release: Release) -> Any:
    return yaml.safe_load(release.get("Secret", "determined-master-config")["stringData"]["master.yaml"]).get("web")


def test_the_page_of_another_image_is_copied_to_where_the_api_serves_it(rendered: Rendered) -> None:
    release = rendered("page_of_image")
    pod = pod_of(release)
    (copies,) = pod["initContainers"]
    assert copies["image"] == "determinedai/determined-master:0.38.1"
    assert copies["env"] == [{"name": "FROM", "value": "/built"}]
    assert copies["securityContext"]["readOnlyRootFilesystem"]
    (volume,) = [each for each in pod["volumes"] if each["name"] == "page"]
    assert volume == {"name": "page", "emptyDir": {}}
    mounts = {each["name"]: each for each in pod["containers"][0]["volumeMounts"]}
    assert web_of(release) == {"root": mounts["page"]["mountPath"]}
    assert mounts["page"]["readOnly"]


def test_the_page_of_a_volume_is_served_as_it_is(rendered: Rendered) -> None:
    release = rendered("page_of_volume")
    assert web_of(release) == {"root": "/page"}
    assert "initContainers" not in pod_of(release)


def test_without_one_nothing_is_copied(rendered: Rendered) -> None:
    release = rendered("defaults")
    assert web_of(release) is None
    assert "initContainers" not in pod_of(release)
