"""What the documentation gives to Helm: each example of values, and each command, makes manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness.helm import find_helm, render
from tests.harness.pages.blocks import Block
from tests.harness.pages.shell import Shell
from tests.harness.processes import REPOSITORY
from tests.integration.helm.conftest import BESIDE
from tests.scenarios.documented_blocks import NOT_TYPED, How, blocks_that_are

BLOCKS: Final = blocks_that_are(How.RENDERED)
REST: Final[dict[str, dict[str, Any]]] = {
    "several-clusters": {"tlsSecret": "det-tls"},
    "tls": {"tlsSecret": "det-tls"},
}
"""Values that the text of a page asks for, besides those of its examples."""

# Without a cluster, what would be installed is rendered.
TEMPLATE: Final = f"""
helm() {{
  case $1 in install|upgrade) shift; command helm template {" ".join(BESIDE)} "$@";; *) return 64;; esac
}}
"""


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "yaml"], ids=str)
def test_examples_of_values_are_rendered(block: Block, tmp_path: Path) -> None:
    values = {"maxSlotsPerPod": 8, **REST.get(block.page.stem, {}), **yaml.safe_load(block.text)}
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    assert render(path, *BESIDE).manifests


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "sh"], ids=str)
def test_commands_of_helm_are_rendered(block: Block, tmp_path: Path) -> None:
    find_helm()
    (tmp_path / "deploy").symlink_to(REPOSITORY / "deploy")
    (tmp_path / "values.yaml").write_text("maxSlotsPerPod: 8\n")
    shell = Shell(tmp_path, tmp_path / "home", prelude=TEMPLATE, skipped=NOT_TYPED)
    shell.type(block, {"REGISTRY": "registry.example.com/team"})
    assert all("kind: Deployment" in printed for printed in shell.said.values())
    assert shell.said
