"""After two imports, with work in the old installation in between, the client finds each object as it was there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from deploy.determined_import.report import as_text
from libs.db.connecting.settings import asyncpg_url
from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.client_program import ClientProgram
from tests.harness.containers import ContainerNats
from tests.harness.determined.objects import Objects, objects_of
from tests.harness.determined.rows import ODD, PASSWORD
from tests.integration.api.world import CLUSTER
from tests.integration.determined_import.conftest import make_old
from tests.integration.determined_import.test_repeating import imported, work_there

TIMES: Final = frozenset({"startTime", "endTime", "reportTime"})


def with_client(url: str, bus_url: str, directory: Path) -> Objects:
    """Everything that an administrator sees with the client in this installation."""
    cluster = directory.parent / "cluster.yaml"
    cluster.write_text(CLUSTER)
    settings = {"cluster_config": str(cluster)}
    with ApiProcess(directory, database_url=url, bus_url=bus_url, settings=settings) as api:
        program = ClientProgram("seen_objects", "admin", PASSWORD, env={"DET_MASTER": api.url, "HOME": str(directory)})
        found: Objects = program.printed()
    for fields in (each for of_kind in found.values() for each in of_kind.values() if isinstance(each, dict)):
        for name in TIMES & fields.keys():
            fields[name] = fields[name] and datetime.fromisoformat(fields[name]).isoformat()
    return found


def differences(theirs: Objects, ours: Objects) -> list[str]:
    """Each object or field that is not the same, with both values."""
    return [
        f"{kind} {key} {name}: there {of_theirs.get(name)!r}, here {of_ours.get(name)!r}"
        for kind in sorted(theirs.keys() | ours.keys())
        for key in sorted(theirs[kind].keys() | ours[kind].keys())
        for of_theirs, of_ours in [(_fields(theirs[kind].get(key)), _fields(ours[kind].get(key)))]
        for name in sorted(of_theirs.keys() | of_ours.keys())
        if of_theirs.get(name) != of_ours.get(name)
    ]


def _fields(each: Any) -> Mapping[str, Any]:
    return each if isinstance(each, dict) else {"": each}


def _trials_of(objects: Objects, experiment: int) -> list[dict[str, Any]]:
    return [each for each in objects["trials"].values() if each["experimentId"] == experiment]


@pytest.mark.slow
async def test_every_object_is_found_as_it_was_there(
    empty_database_url: str, new_url: str, nats_server: NatsServer | ContainerNats, tmp_path: Path
) -> None:
    await make_old(empty_database_url, tmp_path / "checkpoints")
    assert (await imported(empty_database_url, new_url)).agrees
    await work_there(empty_database_url, new_url, tmp_path / "more")
    again = await imported(empty_database_url, new_url)
    assert again.agrees, as_text(again)
    connection = await asyncpg.connect(asyncpg_url(empty_database_url))
    try:
        theirs = await objects_of(connection)
    finally:
        await connection.close()
    ours = with_client(new_url, nats_server.url, tmp_path / "api")
    for fields in (ours["experiments"][str(ODD)], *_trials_of(ours, ODD)):
        assert fields.pop("endTime"), "it cannot go on here, and ended when it came"
    for fields in (theirs["experiments"][str(ODD)], *_trials_of(theirs, ODD)):
        assert fields.pop("endTime") is None
    assert [len(theirs[kind]) for kind in ("users", "experiments", "trials", "models")] == [5, 5, 6, 1]
    found = differences(theirs, ours)
    assert not found, "\n".join(found)
