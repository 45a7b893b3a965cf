"""Every command of "Users, passwords and rights", typed in the order of the page by the unmodified client."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from tests.harness.det import Det
from tests.integration.api.world import CLUSTER, World

PAGE: Final = Path(__file__).resolve().parents[4] / "docs" / "users-and-rights.md"
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PASSWORD: Final = "Passw0rd!"
ASKS: Final = {"change-password": [PASSWORD, PASSWORD], "create": [PASSWORD, PASSWORD], "login": [PASSWORD]}

pytestmark = pytest.mark.xdist_group("page_of_users")


def test_the_page_can_be_followed(world: World, tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    (configuration,) = [text for kind, text in blocks if kind == "yaml"]
    path = world.directory / "page_of_users.yaml"
    path.write_text(CLUSTER + configuration)
    first = ["det user login admin\n"]
    with world.api("page-of-users", cluster_config=str(path)) as api:
        administrator = Det(url=api.url, home=tmp_path / "administrator")
        ann = Det(url=api.url, home=tmp_path / "ann")
        for block in (text for kind, text in blocks if kind == "sh"):
            det = ann if block.startswith("det user login ann") else administrator
            for line in block.splitlines(keepends=True):
                _, *arguments = shlex.split(line)
                # An installation of tests begins with a blank password.
                answers = [""] if line in first else ASKS.get(arguments[1], []) if arguments[0] == "user" else []
                said = det(*arguments, answers=answers).out
                if arguments == ["user", "whoami"]:
                    assert "logged in as user 'ann'" in said
                elif arguments == ["rbac", "list-users-roles", "ann"]:
                    assert "Editor" in said
                elif arguments == ["workspace", "list-members", "research"]:
                    assert "vision" in said
