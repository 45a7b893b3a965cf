"""What the chart makes of the answers of a cluster: notes that hold, and the image of a database that is there."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.harness.answering_cluster import Manifest, answering_cluster
from tests.harness.helm import Release, read_manifests, run_helm


def rendered(chart: Path, objects: list[Manifest], *options: str) -> Release:
    with answering_cluster(objects) as url:
        done = run_helm(
            "template", "rel", str(chart), "-n", "ml", "--dry-run=server", "--kube-apiserver", url, *options
        )
    assert done.returncode == 0, done.stderr
    return Release("rel", "ml", read_manifests(done.stdout))


def named(kind: str, name: str, **more: Any) -> Manifest:
    version = "apps/v1" if kind == "StatefulSet" else "v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "ml"}, **more}


def kept(password: str) -> Manifest:
    values = {"initial-password": password, "cluster-id": "c", "tasks-namespace": "rel-tasks", "since": "own-namespace"}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return named("Secret", "resolute-generated-rel", data=data)


CLAIM: Final = named("PersistentVolumeClaim", "determined-db-pvc-rel")
READ: Final = "get secret resolute-generated-rel -o jsonpath='{.data.initial-password}'"
KEEP_THEIRS: Final = "The users of this installation are stored and keep their passwords."
STORED: Final = "initialUserPassword is taken for a new database only"


class Case(NamedTuple):
    name: str
    objects: list[Manifest]
    options: tuple[str, ...]
    password: str | None
    """What the api is given; None where it is made."""
    says: str


GIVEN: Final = ("--set", "initialUserPassword=Another-1")
CASES: Final = [
    Case("a new installation", [], (), None, "The first password of admin and determined:"),
    Case("a new one with a password", [], GIVEN, "Another-1", "The first password of admin and determined:"),
    Case("an upgrade", [kept("First-Pass1"), CLAIM], ("--is-upgrade",), "First-Pass1", "unless it has been changed"),
    Case("an upgrade with another one", [kept("First-Pass1"), CLAIM], ("--is-upgrade", *GIVEN), "First-Pass1", STORED),
    Case("data that was kept, another one", [kept("First-Pass1"), CLAIM], GIVEN, "First-Pass1", STORED),
    Case("data that was kept without its Secret", [CLAIM], GIVEN, "Another-1", STORED),
    Case("data that was kept without its Secret, none given", [CLAIM], (), None, KEEP_THEIRS),
    Case("data that was deleted", [kept("First-Pass1")], GIVEN, "Another-1", "The first password of admin and deter"),
    Case(
        "a database of one's own",
        [],
        ("--set", "db.hostAddress=db.example.com"),
        None,
        "if the database determined was empty; users that it had keep theirs",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_notes_name_a_password_only_where_it_holds(case: Case, chart_with_notes: Path) -> None:
    release = rendered(chart_with_notes, case.objects, "--set", "maxSlotsPerPod=4", *case.options)
    notes = release.get("Notes", "notes")["text"]
    assert case.says in notes
    assert (READ in notes) == (case.says not in (STORED, KEEP_THEIRS))
    assert case.password in (None, release.secret("resolute-generated", "initial-password"))


def test_notes_say_that_the_secret_of_the_certificate_is_missing(chart_with_notes: Path) -> None:
    options = ("--set", "maxSlotsPerPod=4,tlsSecret=certificate")
    missing, there = (
        rendered(chart_with_notes, objects, *options).get("Notes", "notes")["text"]
        for objects in ([], [named("Secret", "certificate")])
    )
    assert "WARNING: there is no Secret certificate in ml, which tlsSecret names" in missing
    assert "create secret tls certificate --cert=tls.crt --key=tls.key" in missing
    assert "WARNING" not in there


def test_an_upgrade_goes_on_with_the_postgresql_that_made_the_files(chart_with_notes: Path) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "determined-db-pvc-rel"}}
    pods = {"containers": [{"image": "postgres:17"}], "volumes": [volume]}
    live = named("StatefulSet", "determined-db-deployment-rel", spec={"template": {"spec": pods}})
    release = rendered(chart_with_notes, [live, kept("First-Pass1")], "--set", "maxSlotsPerPod=4", "--is-upgrade")
    assert release.container("StatefulSet", "determined-db-deployment")["image"] == "postgres:17"
    assert "the files of the database were made by postgres:17" in release.get("Notes", "notes")["text"]
