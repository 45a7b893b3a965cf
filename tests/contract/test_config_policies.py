"""What an administrator fixes and limits with ``det config-policies``, and what users of that workspace run into."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.whole_system import WholeSystem
from tests.programs import submit

WORKSPACE = ("-w", "with policies")
"""Other tests run beside these, so no policy holds everywhere."""


@pytest.fixture
def admin(whole_system: WholeSystem) -> Client:
    client = whole_system.det("policies", forked=True)
    client("user", "login", "admin", answers=("",))
    return client


def test_policies_of_a_workspace_from_setting_them_to_a_task_that_keeps_to_them(
    admin: Client, det: Client, look: Looking, tmp_path: Path
) -> None:
    admin("workspace", "create", WORKSPACE[1])
    admin("project", "create", WORKSPACE[1], "limited")
    limits, fixed, template = (tmp_path / name for name in ("limits.yaml", "fixed.yaml", "template.yaml"))
    limits.write_text(yaml.safe_dump({"constraints": {"resources": {"max_slots": 0}}}))
    fixed.write_text(yaml.safe_dump({"invariant_config": {"environment": {"environment_variables": ["FIXED=yes"]}}}))
    template.write_text("resources: {slots: 1}\n")
    det("template", "set", "beyond-the-limit", str(template))
    admin("config-policies", "set", "tasks", str(limits), *WORKSPACE)
    admin("config-policies", "set", "experiment", str(fixed), *WORKSPACE)

    beyond = ("--template", "beyond-the-limit")
    for options in (beyond, ("--config", "resources.slots=1")):
        refused = det.fails("cmd", "run", "-d", *options, *WORKSPACE, "true")
        assert "requested resources.slots [1] exceeds limit" in refused
    printed = det("cmd", "run", "--config", "resources.slots=0", *beyond, *WORKSPACE, "echo within the limit")
    assert "within the limit" in printed
    assert "resources exited successfully" in printed

    options = ("--project_id", str(project_of(det)))
    experiment = submit(det, 'test "$FIXED" = yes', *options)
    look.wait(experiment)

    admin("config-policies", "delete", "tasks", *WORKSPACE)
    assert "resources exited successfully" in det("cmd", "run", *beyond, *WORKSPACE, "true")
    det("template", "remove", "beyond-the-limit")


def project_of(det: Client) -> int:
    (project,) = yaml.safe_load(det("project", "list", WORKSPACE[1], "--json"))
    return int(project["id"])
