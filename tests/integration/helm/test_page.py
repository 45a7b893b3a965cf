"""The built page that the api serves: out of another image, or of a volume."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
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


def test_the_copy_is_whole_or_names_where_a_page_is(rendered: Rendered, tmp_path: Path) -> None:
    """In a directory that stands for the file system of the image."""
    (copies,) = pod_of(rendered("page_of_image"))["initContainers"]
    (script,) = copies["args"]
    script = script.replace("/page/", f"{tmp_path}/page/").replace("find / ", f"find {tmp_path}/image ")
    built = tmp_path / "image" / "webui" / "react"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("built")
    (built / "real.js").write_text("script")
    (built / "assets" / "link.js").symlink_to(built / "real.js")
    (tmp_path / "page").mkdir()

    def run(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [*copies["command"], script]
        return subprocess.run(
            command, env={**os.environ, "FROM": str(folder)}, capture_output=True, text=True, check=False
        )

    failed = run(tmp_path / "image" / "webui")
    assert (failed.returncode, "has no index.html" in failed.stdout, str(built) in failed.stdout) == (1, True, True)
    assert list((tmp_path / "page").iterdir()) == []
    assert run(built).returncode == 0
    copied = tmp_path / "page" / "assets" / "link.js"
    assert ((tmp_path / "page" / "index.html").read_text(), copied.read_text()) == ("built", "script")
    assert not copied.is_symlink(), "it would lead out of the folder"
