"""Upgrades and back, and the end of an installation, with the commands of docs/install-kubernetes.md as they stand."""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.installation.work import Trials, asking, commands_about, typing
from tests.harness.client import Client
from tests.harness.helm import chart_without_own_labels
from tests.harness.installation import DEPLOYMENTS, NAMESPACE, PATIENT, POOLS, RELEASE, Installation
from tests.harness.looking import Looking
from tests.harness.pages.blocks import blocks_of, document
from tests.harness.processes import REPOSITORY
from tests.harness.waiting import wait_until
from tests.programs import create_arguments

pytestmark = [pytest.mark.installation, pytest.mark.timeout(900)]

OF_EVERY_NAMESPACE = {"configmap/kube-root-ca.crt", "serviceaccount/default"}


def commands(section: str) -> list[str]:
    """Lines of the shell in a section of the documentation."""
    blocks = [block for block in blocks_of(document("install-kubernetes"), "sh") if block.heading == section]
    return [line.split("    #")[0].strip() for block in blocks for line in block.text.splitlines()]


@pytest.fixture(scope="module")
def chart_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart of the last commit before this one that another had."""
    done = subprocess.run(
        ["git", "rev-list", "-2", "HEAD", "--", "deploy/helm"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    commit = done.stdout.split()[-1]
    packed = subprocess.run(["git", "archive", commit, "deploy/helm"], cwd=REPOSITORY, capture_output=True, check=True)
    folder: Path = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "deploy" / "helm"


def newest_template(installation: Installation, deployment: str) -> datetime:
    """When a Deployment last got pods of another kind."""
    selector = f"app={deployment.replace('-deployment', '')}"
    made = [each["metadata"]["creationTimestamp"] for each in installation.kubectl.items("replicasets", selector)]
    return datetime.fromisoformat(max(made))


def last_migration(installation: Installation) -> datetime:
    """When one was complete."""
    events: dict[str, Any] = json.loads(
        installation.kubectl("get", "events", "--field-selector=reason=Completed,involvedObject.kind=Job", "-o", "json")
    )
    job = f"resolute-migration-{RELEASE}"
    ended = [each["lastTimestamp"] for each in events["items"] if each["involvedObject"]["name"] == job]
    return datetime.fromisoformat(max(ended))


def changed(value: str) -> list[str]:
    """Options with which every service gets new pods."""
    return [f"--set={service}.podAnnotations.test={value}" for service in ("api", "scheduler", "logs", "launcher")]


@pytest.mark.long
def test_an_upgrade_from_the_chart_before_and_back_under_load(
    installation: Installation, det: Client, look: Looking, chart_before: Path
) -> None:
    installation.upgrade(*changed("before"), chart=chart_before)
    trials = Trials(installation, det, look)
    person = Client(installation.url, det.home, env=PATIENT, forked=True)
    with typing(person, commands_about(trials.all[0])) as typed:
        installation.upgrade(*changed("now"))
        for deployment in DEPLOYMENTS.values():
            assert last_migration(installation) <= newest_template(installation, deployment)
        trials.wait_for_progress("an upgrade")
        (rollback,) = [line for line in commands("Upgrading") if "rollback" in line]
        installation.shell(rollback)
        trials.wait_for_progress("a rollback")
    assert typed.failures == []
    assert typed.commands > 10
    trials.end()


def selectors(installation: Installation) -> set[str]:
    """Keys by which Services select pods."""
    services = installation.kubectl.items("services", f"release={RELEASE}")
    return {key for each in services for key in each["spec"]["selector"]}


OWN: Final = {"resolute/release", "resolute/component"}


@pytest.mark.long
def test_services_answer_while_what_selects_their_pods_changes(
    installation: Installation, det: Client, look: Looking, tmp_path: Path
) -> None:
    """From a release whose pods have no labels of our own domain, through two upgrades, and all the way back."""
    assert selectors(installation) == OWN
    # As administrators do who install an older chart over this one; a migration of it is let through to the database.
    installation.upgrade("--set=podSelectors=former")
    installation.upgrade(chart=chart_without_own_labels(tmp_path / "before"))
    before = installation.revision()
    trials = Trials(installation, det, look)
    with asking(installation.url, "/info") as asked:
        installation.upgrade()
        assert selectors(installation) == {"app"}
        trials.wait_for_progress("an upgrade that gives pods their labels")
        installation.upgrade()
        assert selectors(installation) == OWN
        trials.wait_for_progress("an upgrade that selects by them")
        installation.upgrade(*changed("own"))
        assert selectors(installation) == OWN
        trials.wait_for_progress("an upgrade with new pods")
        installation.helm("rollback", RELEASE, "--wait")
        assert selectors(installation) == OWN
        installation.helm("rollback", RELEASE, str(before), "--wait")
        assert selectors(installation) == {"app"}
        trials.wait_for_progress("a rollback to the release before")
    assert asked.failures == []
    assert asked.requests > 500
    trials.end()
    installation.upgrade()
    installation.upgrade()
    assert selectors(installation) == OWN


@pytest.mark.long
def test_a_migration_that_fails_leaves_everything_as_it_was(installation: Installation, det: Client) -> None:
    before = {deployment: newest_template(installation, deployment) for deployment in DEPLOYMENTS.values()}
    # An image without the command.
    broken = ("--set=migration.image=local/resolute-nats:test", "--set=migration.timeoutSeconds=5")
    done = installation.try_upgrade(*changed("never"), *broken)
    assert done.returncode != 0
    assert "pre-upgrade hooks failed" in done.stderr
    assert before == {deployment: newest_template(installation, deployment) for deployment in DEPLOYMENTS.values()}
    det("experiment", "list")
    installation.upgrade()


def left(installation: Installation, namespace: str) -> set[str]:
    """Everything in a namespace that somebody has put there."""
    kinds = "all,secret,configmap,persistentvolumeclaim,serviceaccount,role,rolebinding"
    kinds += ",networkpolicy,lease,poddisruptionbudget"
    found = set(installation.cluster("get", kinds, "-n", namespace, "-o", "name").split())
    return found - OF_EVERY_NAMESPACE


@pytest.mark.long
def test_whoever_installs_again_finds_everything(installation: Installation, det: Client) -> None:
    det(*create_arguments(det, "true", name="kept"))
    installation.shell(commands("Uninstalling")[0])
    wait_until(lambda: not installation.readiness(), timeout_s=120, every_s=1, what="no pod is left")
    known = {"persistentvolumeclaim/determined-db-pvc-det", f"persistentvolumeclaim/data-resolute-nats-{RELEASE}-0"}
    assert known | {f"secret/resolute-generated-{RELEASE}"} <= left(installation, NAMESPACE)
    installation.install()
    again = Installation(installation.kubeconfig, installation.home, installation.values)
    assert again.password == installation.password
    assert " kept " in again.det("again")("experiment", "list")


def test_the_documented_commands_leave_nothing_behind(installation: Installation) -> None:
    """With a trial in each pool that nobody has ended."""
    again = Installation(installation.kubeconfig, installation.home, installation.values)
    with again.http() as http:
        Trials(again, again.det("last"), Looking(http))
    uninstall, *clean = commands("Uninstalling")
    again.shell(uninstall)
    for command in clean:
        for namespace in POOLS.values() if "research" in command else [""]:
            again.shell(command.replace("research", namespace))
    for namespace in (NAMESPACE, *POOLS.values()):
        wait_until(lambda: not left(again, namespace), timeout_s=120, every_s=1, what=f"{namespace} is empty")  # noqa: B023
    everywhere = again.cluster("get", "clusterrole,clusterrolebinding,priorityclass,namespace", "-o", "name").split()
    ours = re.compile(r"resolute|determined|/det$|/det-tasks$|/batch$")
    assert [name for name in everywhere if ours.search(name)] == [f"namespace/{NAMESPACE}"]
