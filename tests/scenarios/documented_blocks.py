"""What becomes of each fenced block of the documentation, page by page, in the order of the page: rows as data.

A block that a reader can use is used by a test, which a row names. A new block needs a row, and one that nobody can run
a reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.harness.pages.blocks import Block, blocks_of
from tests.harness.processes import REPOSITORY


class How(StrEnum):
    USED = "typed, saved or run by the test that ``by`` names, in the order of the page"
    RENDERED = "values and commands of the chart, of which Helm makes manifests"
    ACCEPTED = "a cluster configuration, which services read"
    TARGETS = "targets of make, which exist"
    SHOWN = "nothing to run here, for the reason in ``by``"


@dataclass(frozen=True)
class Row:
    """``begins`` is the first line of the block, or its beginning."""

    begins: str
    how: How
    by: str = ""


def used(begins: str, by: str) -> Row:
    return Row(begins, How.USED, by)


def shown(begins: str, why: str) -> Row:
    return Row(begins, How.SHOWN, why)


def rendered(begins: str) -> Row:
    return Row(begins, How.RENDERED, "tests/integration/helm/test_pages.py")


def accepted(begins: str) -> Row:
    return Row(begins, How.ACCEPTED, "tests/unit/docs/test_documented_configurations.py")


ONE_MACHINE: Final = "tests/e2e/pages/test_on_one_machine.py"
OPERATIONS: Final = "tests/e2e/test_operations_page.py"
MOVING: Final = "tests/e2e/test_moving_page.py"
RIGHTS: Final = "tests/integration/api/users/test_page_of_users.py"
DOCKER: Final = "needs Docker; tests/e2e/compose drives the project"
KUBERNETES: Final = "needs pods that run; tests/e2e/installation does these things on a cluster"
COMPLETION: Final = "tests/integration/operations/test_completion.py"
SPECIFICATION: Final = "a rule of the reference in pseudocode"

NOT_TYPED: Final[Mapping[str, str]] = {
    "pip install determined": "`make setup` has installed the client, with the hashes of its lock",
    'eval "$(resolute completion zsh)"': f"for zsh; {COMPLETION} has one",
    "resolute completion fish": f"for fish; {COMPLETION} has one",
    "helm test det": KUBERNETES,
    "helm rollback det": KUBERNETES,
    "kubectl -n det get jobs": KUBERNETES,
    "kubectl -n det get pods": KUBERNETES,
    "kubectl -n det delete statefulset": KUBERNETES,
    "kubectl -n det delete pod": KUBERNETES,
    "for claim in": KUBERNETES,
}
"""How commands begin that are left out of blocks whose other commands are typed, and why."""

ROWS: Final[Mapping[str, tuple[Row, ...]]] = {
    "README.md": (
        Row("make demo", How.TARGETS, "tests/unit/docs/test_blocks.py"),
        used("export DET_MASTER=", ONE_MACHINE),
        shown("docker compose up", DOCKER),
        rendered("helm install det"),
    ),
    "CONTRIBUTING.md": (
        Row("make setup", How.TARGETS, "tests/unit/docs/test_blocks.py"),
        shown("Park lines that are ahead", "the message of a commit"),
    ),
    "docs/administrators.md": (
        used("resolute up ", ONE_MACHINE),
        used('eval "$(resolute completion bash)"', ONE_MACHINE),
        shown("resolute up --kubeconfig", KUBERNETES),
        shown("det workspace create team-a", "namespaces need a cluster: tests/e2e/test_workspaces_on_clusters.py"),
        used("invariant_config:", ONE_MACHINE),
        used("constraints:", ONE_MACHINE),
        used("det config-policies set", ONE_MACHINE),
        used("det rp bindings add", ONE_MACHINE),
        used("det resources aggregated", ONE_MACHINE),
        shown("scrape_configs:", "the configuration of Prometheus, which the tests do not run"),
        used("resolute audit --user", ONE_MACHINE),
        used("2026-01-31 12:00:05", ONE_MACHINE),
        shown("POST /api/v1/experiments", "a drawing of a trace"),
        accepted("cluster_name: research"),
        accepted("scim:"),
        accepted("webhooks:"),
        used("curl -H", ONE_MACHINE),
        used("det dev curl", ONE_MACHINE),
    ),
    "docs/compose.md": (
        shown("docker compose up", DOCKER),
        shown("docker compose ps", DOCKER),
        shown("services:", DOCKER),
        shown("docker compose -f", DOCKER),
    ),
    "docs/events.md": (
        used("import asyncio, json, os", "tests/e2e/test_events.py"),
        used("resolute events ", ONE_MACHINE),
    ),
    "docs/gpu-nodes.md": (rendered("resourcePools:"), rendered("maxSlotsPerPod: 8"), rendered("maxSlotsPerPod: 8")),
    "docs/images.md": (shown("docker build", "needs Docker; .ci builds the images"),),
    "docs/install-kubernetes.md": (
        rendered("helm install det"),
        rendered("helm install det"),
        rendered("db:"),
        rendered("helm upgrade det"),
        shown("kubectl -n det exec", KUBERNETES),
        shown("helm uninstall det", KUBERNETES),
        shown("kubectl -n det delete", KUBERNETES),
        shown("kubectl delete priorityclass", KUBERNETES),
    ),
    "docs/move-tasks.md": (
        shown("kubectl -n det get secret", KUBERNETES),
        rendered("helm upgrade det"),
        rendered("kubectl -n det get jobs"),
        rendered("helm upgrade det"),
    ),
    "docs/moving-from-determined.md": (
        used("resolute up --only-servers", MOVING),
        used("export RESOLUTE_DATABASE__URL", MOVING),
        used("resolute import --dump", MOVING),
        used("resolute down", MOVING),
        rendered("web:"),
        shown("docker create", "needs Docker, and an image of the former product"),
        accepted("web: {root"),
    ),
    "docs/operations.md": (
        used("resolute doctor ", ONE_MACHINE),
        shown("kubectl -n det exec", KUBERNETES),
        used("resolute smoke-test", ONE_MACHINE),
        used("resolute config check", ONE_MACHINE),
        used("resolute db upgrade", ONE_MACHINE),
        used("resolute backup before-upgrade.tar.gz", OPERATIONS),
        used("resolute up", OPERATIONS),
        used("resolute backup resolute-", OPERATIONS),
        used("tar -xzOf", OPERATIONS),
        used("resolute down --tasks", OPERATIONS),
    ),
    "docs/reference/experiments.md": (
        shown("value = metrics", SPECIFICATION),
        shown("R = min(", SPECIFICATION),
    ),
    "docs/reference/harness-protocol.md": (
        shown("slots_needed =", SPECIFICATION),
        shown("DET_TASK_ID=", "the environment of a task"),
        shown('{"allocationId": A', "the shape of a request"),
        shown("join(uuid", SPECIFICATION),
    ),
    "docs/reference/kubernetes.md": (
        shown("kind: Job", "the shape of a Job, with parts left out"),
        shown("helm list", "commands that users of Determined know, for the names of objects in them"),
    ),
    "docs/reference/logs.md": (
        shown("cursor = none", SPECIFICATION),
        shown("service: {flush", "the configuration of fluent-bit in pods, which the launcher makes"),
    ),
    "docs/reference/platform.md": (
        shown('{"error":', "the shape of an answer"),
        shown("root  =", "a grammar"),
    ),
    "docs/reference/scheduling.md": (
        shown("ws_compute, ws_aux", SPECIFICATION),
        shown("best(req,a)", SPECIFICATION),
        shown("find_fits", SPECIFICATION),
        shown("zero-slot, unallocated", SPECIFICATION),
        shown("pending[p]", SPECIFICATION),
        shown("try_exit", SPECIFICATION),
        shown("for each unscheduled", SPECIFICATION),
    ),
    "docs/reference/tasks-and-cli.md": (
        shown("ws = req.workspaceId", SPECIFICATION),
        shown('{"notebook":', "the shape of an answer"),
    ),
    "docs/reverse-proxy.md": (
        rendered("api:"),
        used("RESOLUTE_HTTP__TRUSTED_PROXIES", ONE_MACHINE),
        shown("a page of another site", "a line of a log"),
        used("map $http_upgrade", "tests/integration/api/test_behind_nginx.py"),
        shown("entryPoints:", "the configuration of Traefik, which the tests do not run"),
    ),
    "docs/scale.md": (
        rendered("for claim in"),
        rendered("helm upgrade det"),
        rendered("helm upgrade det"),
    ),
    "docs/secure.md": (rendered("security:"), rendered("tasks:")),
    "docs/several-clusters.md": (rendered("resourcePools:"), rendered("launcherOnly: true")),
    "docs/scheduling.md": (
        used("resolute w", "tests/e2e/test_before_submitting.py"),
        used("resources:", "tests/integration/api/experiments/test_time_limits.py"),
        accepted("resource_pools:"),
        used("resources:", "tests/integration/api/experiments/test_fallback_pools.py"),
        used("resolute maintenance add", "tests/integration/operations/test_maintenance.py"),
        accepted("resource_pools:"),
        used("resources:", "tests/integration/api/experiments/test_topology.py"),
        accepted("resource_manager:"),
        accepted("resource_pools:"),
    ),
    "docs/several-pools.md": (rendered("maxSlotsPerPod: 8"),),
    "docs/simulation-results.md": (Row("make simulation", How.TARGETS, "tests/unit/docs/test_blocks.py"),),
    "docs/simulator.md": (
        used("make setup", "tests/unit/load/simulate/test_measures.py"),
        shown(".venv/bin/python -m tests.load.simulate.kueue", "it needs a file of another repository"),
    ),
    "docs/single-sign-on.md": (accepted("oidc:"), rendered("oidc:")),
    "docs/tls.md": (
        shown("apiVersion: cert-manager.io/v1", "an object of cert-manager, which the tests do not install"),
        rendered("tlsSecret:"),
        accepted("security:"),
        shown("problem  log intake", "a line of `resolute doctor`"),
        rendered("tls:"),
    ),
    "docs/users-and-rights.md": (
        used("det user login admin", RIGHTS),
        used("det user change-password determined", RIGHTS),
        used("det user create ann", RIGHTS),
        used("det user login ann", RIGHTS),
        used("det user change-password ann", RIGHTS),
        used("det user link-with-agent-user", RIGHTS),
        used("security:", RIGHTS),
        used("det workspace create research", RIGHTS),
    ),
    "docs/users.md": (
        used("pip install determined", ONE_MACHINE),
        used("name: digits", ONE_MACHINE),
        used("cd examples/digits", ONE_MACHINE),
        used("resources:", ONE_MACHINE),
        used("det template create", ONE_MACHINE),
        used("det workspace create Vision", ONE_MACHINE),
        used("import os", ONE_MACHINE),
        used("det cmd run", ONE_MACHINE),
        used("name: with servers", ONE_MACHINE),
        used("entrypoint: [python, check.py]", ONE_MACHINE),
        used("entrypoint: [sleep", ONE_MACHINE),
        used("det task create job.yaml", ONE_MACHINE),
        used("det task pause CHANGED", ONE_MACHINE),
    ),
}


def blocks_by(name: str, test: str) -> list[Block]:
    """The blocks of a page that a test uses, in their order."""
    return [block for block, row in _with_rows(name) if row.by == test]


def blocks_that_are(how: How) -> list[Block]:
    """The blocks of all pages of which something becomes."""
    return [block for name in ROWS for block, row in _with_rows(name) if row.how is how]


def _with_rows(name: str) -> list[tuple[Block, Row]]:
    """Blocks without a row, and rows without a block, are left out: a test of this table names them."""
    return list(zip(blocks_of(REPOSITORY / name), ROWS[name], strict=False))
