"""Commands, with what users give them: contexts, hooks, variables, memory, templates, workspaces."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.e2e.interactive.users import User

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]

AUXILIARY = ("--config", "resources.slots=0")


def test_what_a_command_prints_and_how_it_ended_is_followed(user: User, tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("print('hello from', __file__)\n")
    (tmp_path / "target").write_text("through a link\n")
    (tmp_path / "link").symlink_to("target")
    printed = user.det("cmd", "run", "-c", str(tmp_path), *AUXILIARY, "sh", "-c", "python3 hello.py; cat link; ls -l")
    assert "hello from /run/determined/workdir/hello.py" in printed
    assert "through a link" in printed
    assert "->" not in printed
    assert "resources exited successfully with a zero exit code" in printed
    name = re.findall(r"name: (Command \([a-z-]+\))", printed)[0]
    for line in (f"{name} was assigned to an agent", f"Resources for {name} have started", f"{name} ended by itself"):
        assert line in printed


def test_a_command_that_fails_says_so_last(user: User) -> None:
    printed = user.det("cmd", "run", *AUXILIARY, "false")
    assert re.search(r"crashed: resources failed with non-zero exit code: .*\(exit code 1\)", printed)
    task = re.findall(r"\(id: ([0-9a-f-]{36})", printed)[0]
    assert user.exit_status("command", task).endswith("(exit code 1)")
    assert "TERMINATED" in user.det("cmd", "list", "-a")


def test_variables_hooks_and_shared_memory(user: User, tmp_path: Path) -> None:
    hook = tmp_path / "startup-hook.sh"
    hook.write_text("export FROM_HOOK=yes\n")
    config = tmp_path / "config.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "resources": {"slots": 0, "shm_size": "1.5g"},
                "environment": {"environment_variables": ["TEST=TEST", "NO_VALUE"]},
            }
        )
    )
    printed = user.det(
        *("cmd", "run", "--config-file", str(config), "--include", str(hook)),
        'echo "[$FROM_HOOK] [$TEST] [$NO_VALUE]" $(df --output=size -k /dev/shm | tail -1)',
    )
    assert f"[yes] [TEST] [] {3 << 19}" in printed
    printed = user.det(
        *("cmd", "run", *AUXILIARY, "--config", "environment.environment_variables='A=true','B'"),
        *("--config", "resources.shm_size=24576"),
        'echo "[$A] [$B]" $(df --output=size -k /dev/shm | tail -1)',
    )
    assert "[true] [] 24" in printed


def test_templates_and_workspaces(user: User, tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text("environment: {environment_variables: [SHOULDBE=SET]}\nresources: {slots: 0}\n")
    user.det("template", "set", "of-commands", str(template))
    user.det("workspace", "create", "Research")
    task = user.start("command", "--template", "of-commands", "-w", "Research", "echo $SHOULDBE")
    assert user.exit_status("command", task) == "allocation exited successfully"
    assert "SHOULDBE=SET" in user.det("cmd", "config", task)
    assert "|| SET" in user.log(task)
    assert json.loads(user.det("cmd", "describe", task, "--json"))["id"] == task
    assert len(user.det("cmd", "describe", task, "--csv").splitlines()) == 2
    assert task in user.det("cmd", "list", "-w", "Research")
    assert task not in user.det("cmd", "list", "-w", "Uncategorized")


def test_a_context_of_ten_megabytes(user: User, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"x" * (10 << 20))
    assert "10485760 data" in user.det("cmd", "run", "-c", str(tmp_path), *AUXILIARY, "wc -c data")


def test_a_command_with_a_command_of_many_words(user: User) -> None:
    printed = user.det("cmd", "run", *AUXILIARY, "printf", "[%s]", "a b", "$HOME")
    assert "[a b][$HOME]" in printed
