"""A full file system of a part of the state folder is named, whichever part that is."""

from __future__ import annotations

import json
from pathlib import Path

from deploy.local import disks
from deploy.local.layout import Layout
from deploy.operations.doctor.disks import check_disks
from tests.harness.full_disk import small_disk


def test_a_full_file_system_of_nats_alone_is_named(tmp_path: Path) -> None:
    layout = Layout.at(str(tmp_path))
    layout.nats.mkdir()
    (tmp_path / "options.json").write_text(json.dumps({"postgres_data": str(tmp_path / "postgres")}))
    with small_disk(layout.nats, size_mb=8) as disk:
        assert disks.full_disks(layout, None) == []
        disk.fill()
        [full] = disks.full_disks(layout, None)
        assert full.mount_point == str(layout.nats.resolve())
        said = [finding for finding in check_disks(tmp_path) if finding.level == "problem"]
        assert str(layout.nats.resolve()) in said[0].says
