"""Every command of "Users, passwords and rights", typed in the order of the page by the unmodified client."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import pytest

from tests.harness.det import Det
from tests.harness.pages.blocks import blocks_of, document
from tests.harness.pages.shell import commands
from tests.integration.api.world import CLUSTER, World

PASSWORD: Final = "Passw0rd!"
ASKS: Final = {"change-password": [PASSWORD, PASSWORD], "create": [PASSWORD, PASSWORD], "login": [PASSWORD]}

pytestmark = pytest.mark.xdist_group("page_of_users")


def test_the_page_can_be_followed(world: World, tmp_path: Path) -> None:
    page = document("users-and-rights")
    (configuration,) = blocks_of(page, "yaml")
    path = world.directory / "page_of_users.yaml"
    path.write_text(CLUSTER + configuration.text)
    first = ["det user login admin"]
    with world.api("page-of-users", cluster_config=str(path)) as api:
        administrator = Det(url=api.url, home=tmp_path / "administrator")
        ann = Det(url=api.url, home=tmp_path / "ann")
        for block in blocks_of(page, "sh"):
            det = ann if block.text.startswith("det user login ann") else administrator
            for line in commands(block.text):
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
