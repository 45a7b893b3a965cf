"""``helm`` as administrators use it, and manifests as a chart renders them."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

CHART: Final = Path(__file__).parents[2] / "deploy" / "helm"
VERSION: Final = "v3.18.6"
NEEDS_HELM: Final = (
    f"needs helm on the PATH: `go install helm.sh/helm/v3/cmd/helm@{VERSION}`, which puts it into ~/go/bin"
)

# A ninth of the time of the one in Python, and a session reads hundreds of releases; wheels of PyYAML have it.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

CONTAINER: Final = "spec/template/spec/containers/0"

Manifest = dict[str, Any]


def find_helm() -> str:
    """Path of the program; the test is skipped, with the way to get it, where there is none."""
    found = shutil.which("helm")
    if found is None:
        pytest.skip(NEEDS_HELM)
    return found


def run_helm(*arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """One command, whether it succeeds or not."""
    return subprocess.run([find_helm(), *arguments], capture_output=True, text=True, timeout=timeout_s, check=False)


def chart_without_own_labels(folder: Path) -> Path:
    """A chart as it was before pods had labels of our own domain; ``folder`` does not exist yet."""
    shutil.copytree(CHART, folder)
    changes = {
        r' *\{\{- include "resolute\.ownLabels" .* nindent 8 \}\}\n': "",
        r'.* set \$found "pod-selectors" .*\n': "",
        r"^podSelectors: auto$": "podSelectors: former",
    }
    for pattern, replacement in changes.items():
        found = 0
        for path in (*folder.rglob("*.yaml"), *folder.rglob("*.tpl")):
            text, count = re.subn(pattern, replacement, path.read_text(), flags=re.MULTILINE)
            path.write_text(text)
            found += count
        assert found, pattern
    return folder


@dataclass(frozen=True)
class Release:
    """What an installation of the chart would make."""

    name: str
    namespace: str
    manifests: tuple[Manifest, ...]

    @cached_property
    def by_name(self) -> Mapping[tuple[str, str], Manifest]:
        """Kind and name -> manifest; objects of one name in several namespaces count once."""
        return {(found["kind"], found["metadata"]["name"]): found for found in self.manifests}

    def find(self, kind: str, name: str) -> Manifest | None:
        """``name`` is what stands before the name of the release, which is added."""
        return self.by_name.get((kind, f"{name}-{self.name}")) or self.by_name.get((kind, name))

    def get(self, kind: str, name: str) -> Manifest:
        found = self.find(kind, name)
        assert found is not None, f"no {kind} {name} among {sorted(self.by_name)}"
        return found

    def secret(self, name: str, key: str) -> str:
        """What a Secret holds, whichever way it is written down."""
        found = self.get("Secret", name)
        if key in found.get("stringData", {}):
            return str(found["stringData"][key])
        return base64.b64decode(found["data"][key]).decode()

    def pods(self) -> Iterator[tuple[str, Manifest]]:
        """Name of each workload, and the template of its pods."""
        for found in self.manifests:
            if found["kind"] in ("Deployment", "StatefulSet", "Job"):
                yield f"{found['kind']}/{found['metadata']['name']}", found["spec"]["template"]
            elif found["kind"] == "Pod":
                yield f"Pod/{found['metadata']['name']}", found

    def container(self, kind: str, name: str) -> Manifest:
        """The first container of a workload."""
        first: Manifest = self.get(kind, name)["spec"]["template"]["spec"]["containers"][0]
        return first

    def launcher_of(self, pool: str) -> str:
        """Name of the Deployment that launches for a pool."""
        for (kind, name), found in self.by_name.items():
            if kind == "Deployment" and {"name": "RESOLUTE_POOL", "value": pool} in (
                at(found, f"{CONTAINER}/env") or ()
            ):
                return name
        raise AssertionError(f"no launcher of {pool} among {sorted(self.by_name)}")

    def environment(self, kind: str, name: str) -> dict[str, str]:
        """Variables of a workload's first container, with what its Secrets hold as far as the chart makes them."""
        return {each["name"]: self._value(each) for each in self.container(kind, name)["env"]}

    def _value(self, variable: Manifest) -> str:
        if "value" in variable:
            return str(variable["value"])
        source = variable["valueFrom"]
        if "secretKeyRef" not in source:
            return str(source)
        reference = source["secretKeyRef"]
        if ("Secret", reference["name"]) not in self.by_name:
            return f"<{reference['name']}/{reference['key']}>"
        return self.secret(reference["name"], reference["key"])


def render(values: Path, *options: str, name: str = "rel", namespace: str = "ml", chart: Path = CHART) -> Release:
    """What ``helm template`` makes of a values file, which must succeed."""
    done = run_helm("template", name, str(chart), "--namespace", namespace, "-f", str(values), *options)
    assert done.returncode == 0, f"{values.name}: {done.stderr}"
    return Release(name, namespace, read_manifests(done.stdout))


def read_manifests(text: str) -> tuple[Manifest, ...]:
    """What ``helm`` printed; an object of which a condition left nothing does not count."""
    return tuple(found for found in yaml.load_all(text, _LOADER) if found)


def at(manifest: Any, path: str) -> Any:
    """The part of a manifest at a path such as ``spec/ports/0/port``; ``#`` before a key takes the item of that name.

    None where there is nothing.
    """
    for key in path.split("/"):
        if manifest is None:
            return None
        if key.startswith("#"):
            manifest = next((item for item in manifest if item.get("name") == key[1:]), None)
        elif isinstance(manifest, list):
            manifest = manifest[int(key)] if int(key) < len(manifest) else None
        else:
            manifest = manifest.get(key)
    return manifest
