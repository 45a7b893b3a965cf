"""Mistakes that only rendering shows: what values may not say together, and the cluster configuration they make.

``helm template`` renders the chart without a cluster, with the checks that ``helm install`` makes. The configuration
file in the result is then read as the services will read it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from deploy.operations.config.cluster import cluster_mistakes
from deploy.operations.config.mistakes import Mistake
from libs.errors import InvalidRequest

RELEASE: Final = "det"
_TIMEOUT_S: Final = 120
_AT: Final = re.compile(r"^Error: (?:execution error at \(.*?\): )?")
_KEY: Final = re.compile(r"^([a-zA-Z]\w*(?:\.\w+)*)(?:: |(?= is required))")
_NOTES: Final = (
    '{apiVersion: v1, kind: NotesOfValues, metadata: {name: notes}, notes: {{ include "resolute.unapplied" . }}}\n'
)


def has_chart(folder: Path) -> bool:
    return (folder / "Chart.yaml").exists() and (folder / "templates").is_dir()


def rendering_mistakes(file: Path, values: dict[str, Any], chart: Path) -> list[Mistake]:
    """What Helm refuses or the chart's notes say about ``values``, which keep to the schema and stand in ``file``."""
    helm = shutil.which("helm")
    if helm is None:
        says = "helm is not on the PATH, so only names and types were checked, and not what the chart makes of them"
        return [Mistake("warning", "", says)]
    with TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(chart, Path(folder) / "chart"))
        (copy / "templates" / "notes-of-values.yaml").write_text(_NOTES)
        command = [helm, "template", RELEASE, str(copy), "-n", RELEASE, "-f", str(file), *_placed(values)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise InvalidRequest(f"helm template has not ended within {_TIMEOUT_S} s") from error
        if done.returncode:
            return [_split("error", _AT.sub("", done.stderr.strip()).partition("\n\nUse --debug")[0])]
        objects = [each for each in yaml.safe_load_all(done.stdout) if each]
        # Launchers have a part of the configuration once more, for a Secret of their own.
        return list(dict.fromkeys(_of_objects(objects, Path(folder))))


def _placed(values: dict[str, Any]) -> list[str]:
    """Where tasks run, which an installation asks the cluster unless values say so."""
    tasks, manager = (values.get(section) or {} for section in ("tasks", "resourceManager"))
    if tasks.get("namespace") or manager.get("defaultNamespace"):
        return []
    return ["--set", f"tasks.namespace={RELEASE}-tasks"]


def _of_objects(objects: list[dict[str, Any]], folder: Path) -> Iterator[Mistake]:
    for each in objects:
        if each["kind"] == "NotesOfValues":
            yield from (_split("warning", note) for note in each["notes"])
        elif each["kind"] == "Secret" and "master.yaml" in each.get("stringData", {}):
            configuration = folder / "master.yaml"
            configuration.write_text(each["stringData"]["master.yaml"])
            for mistake in cluster_mistakes(configuration):
                says = f"{mistake.says} (in master.yaml, which the chart makes of these values)"
                yield Mistake(mistake.kind, mistake.key, says)


def _split(kind: Any, says: str) -> Mistake:
    """A sentence that begins with a value, as a mistake at this value."""
    found = _KEY.match(says)
    return Mistake(kind, found[1], says[found.end() :].strip()) if found else Mistake(kind, "", says)
