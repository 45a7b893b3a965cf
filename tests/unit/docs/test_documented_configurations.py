"""Examples of the cluster configuration in the documentation are read without a complaint."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from libs.cluster.loading import read_cluster_config
from tests.harness.pages.blocks import Block
from tests.scenarios.documented_blocks import How, blocks_that_are

BLOCKS: Final = blocks_that_are(How.ACCEPTED)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_examples_of_the_configuration_are_read_as_written(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "master.yaml"
    path.write_text(block.text)
    _, warnings = read_cluster_config(path)
    assert warnings == ()
