"""Which PostgreSQL the chart starts: one version everywhere, and never one that cannot read the files there are."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from tests.harness import containers
from tests.harness.helm import CHART, render, run_helm
from tests.integration.helm.conftest import VALUES, options_for

ROOT: Final = Path(__file__).parents[3]


class Kept(NamedTuple):
    live: str
    claim: str
    """Of the volume that pods have so far."""
    wanted: str
    keeps: str


CASES: Final = [
    Kept("postgres:17", "data", "postgres:18", "postgres:17"),
    Kept("registry.example.com:5000/postgres:17.2-alpine", "data", "postgres:18", "keeps"),
    Kept("postgres:17", "former", "postgres:18", ""),
    Kept("postgres:17", "", "postgres:18", ""),
    Kept("postgres:18", "data", "postgres:18.1", ""),
    Kept("example.com/own-postgres@sha256:1234", "data", "postgres:18", ""),
    Kept("", "data", "postgres:18", ""),
]


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart with an object for each case, which says which image is kept."""
    folder: Path = tmp_path_factory.mktemp("images") / "chart"
    shutil.copytree(CHART, folder)
    objects = [
        '{apiVersion: v1, kind: Kept, metadata: {name: kept-NUMBER}, image: {{ include "resolute.keptPostgresImage" '
        '(dict "wanted" "WANTED" "claim" "data" "live" (fromYaml LIVE)) | quote }}}'.replace("NUMBER", str(number))
        .replace("WANTED", case.wanted)
        .replace("LIVE", f"`{yaml.safe_dump(pods(case))}`")
        for number, case in enumerate(CASES)
    ]
    (folder / "templates" / "kept.yaml").write_text("\n---\n".join(objects))
    return folder


def pods(case: Kept) -> dict[str, Any]:
    if not case.live:
        return {}
    data = {"persistentVolumeClaim": {"claimName": case.claim}} if case.claim else {"emptyDir": {}}
    return {"containers": [{"image": case.live}], "volumes": [{"name": "data", **data}, {"name": "tmp"}]}


def test_an_upgrade_keeps_the_version_that_made_the_files(chart: Path) -> None:
    release = render(VALUES / "defaults.yaml", *options_for("defaults"), chart=chart)
    kept = [release.get("Kept", f"kept-{number}")["image"] for number in range(len(CASES))]
    assert kept == [case.live if case.keeps == "keeps" else case.keeps for case in CASES]


def test_an_image_that_is_too_old_is_replaced_by_the_default(tmp_path: Path) -> None:
    for given in ("postgres:10.14", "registry.example.com/postgres:13-alpine", "postgres:9"):
        done = run_helm(
            "template",
            "rel",
            str(CHART),
            "--set",
            f"maxSlotsPerPod=4,tasks.namespace=ml,defaultImages.postgreSQL={given}",
            "-s",
            "templates/database/statefulset.yaml",
        )
        assert 'image: "postgres:18"' in done.stdout, done.stderr


def test_postgresql_has_one_version_everywhere() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())["defaultImages"]["postgreSQL"]
    helper = (CHART / "templates" / "database" / "_image.tpl").read_text()
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["postgres"]["image"]
    image = (ROOT / "deploy" / "images" / "Dockerfile").read_text()
    assert defaults in helper
    versions = {defaults, compose, containers.POSTGRES_IMAGE}
    versions |= {
        f"postgres:{number}" for number in re.findall(r"pginstall(\d+)/|/var/lib/postgresql/(\d+)/", image)[0] if number
    }
    assert len(versions) == 1, versions
