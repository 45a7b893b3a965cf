"""The state folder as ``resolute up`` makes it, and finds it after an upgrade."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from deploy.local.layout import Layout

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as linked users where root starts them")


def mode_of(layout: Layout) -> int:
    return stat.S_IMODE(layout.checkpoints.stat().st_mode)


def test_linked_users_may_save_checkpoints_and_remove_only_their_own(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "state")
    layout.create()
    assert mode_of(layout) == 0o1777


@pytest.mark.parametrize(("found", "becomes"), [(0o755, 0o1777), (0o2770, 0o2770), (0o777, 0o777)])
def test_checkpoints_of_an_earlier_release_are_opened_and_chosen_modes_are_kept(
    tmp_path: Path, found: int, becomes: int
) -> None:
    layout = Layout(tmp_path)
    layout.checkpoints.mkdir()
    layout.checkpoints.chmod(found)
    layout.create()
    assert mode_of(layout) == becomes
