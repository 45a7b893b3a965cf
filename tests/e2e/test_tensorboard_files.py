"""``det e delete-tb-files`` answers when the files are gone, as whoever looks for free space expects."""

from __future__ import annotations

import pytest

from tests.harness.looking import Looking
from tests.harness.whole_system import WholeSystem
from tests.programs import submit


@pytest.mark.slow
def test_the_files_are_gone_when_the_client_has_its_answer(whole_system: WholeSystem) -> None:
    det = whole_system.det()
    experiment = submit(det, "saving.py")
    with whole_system.http() as http:
        Looking(http).wait(experiment)
        cluster = http.get("/api/v1/master").json()["clusterId"]
    files = whole_system.layout.checkpoints / cluster / "tensorboard" / "experiment" / str(experiment)
    assert list(files.rglob("*tfevents*"))
    det("e", "delete-tb-files", str(experiment))
    assert not list(files.rglob("*tfevents*"))
    det("e", "delete-tb-files", str(experiment))  # of what is gone nothing is missing
