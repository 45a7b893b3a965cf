"""What a store of the bus says of itself, and that a conversion that is cut off leaves it whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.bus_servers.store import SHRUNK, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data")


def put(folder: Path, stream: str, *, replicas: int = 1) -> None:
    path = folder / "RESOLUTE" / "streams" / stream / "meta.inf"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"name": stream, "num_replicas": replicas}))


def put_log_of_cluster(folder: Path) -> None:
    (folder / "$SYS" / "_js_" / "_meta_").mkdir(parents=True)


def test_an_empty_store(store: Store) -> None:
    assert not store.has_streams()
    assert not store.is_of_cluster()
    assert not store.was_shrunk()
    store.recover()


def test_a_server_by_itself(store: Store) -> None:
    put(store.streams_folder, "LOGS")
    assert store.has_streams()
    assert not store.is_of_cluster()
    assert store.accounts() == {"RESOLUTE"}


@pytest.mark.parametrize(
    ("mark", "replicas", "expected"), [(True, 1, True), (False, 1, False), (True, 3, False)], ids=str
)
def test_what_was_left_to_one_server(store: Store, mark: bool, replicas: int, expected: bool) -> None:
    put_log_of_cluster(store.streams_folder)
    put(store.streams_folder, "LOGS", replicas=replicas)
    if mark:
        put(store.streams_folder, SHRUNK)
    assert store.is_of_cluster()
    assert store.was_shrunk() == expected


def begin(store: Store) -> None:
    put(store.streams_folder, "OLD")
    put(store.built / "jetstream", "NEW")


def streams(store: Store) -> list[str]:
    return sorted(path.parent.name for path in store.streams_folder.glob("*/streams/*/meta.inf"))


def test_a_swap_leaves_what_was_built_and_nothing_else(store: Store) -> None:
    begin(store)
    store.swap()
    assert streams(store) == ["NEW"]
    assert [path.name for path in store.root.iterdir()] == ["jetstream"]


def test_a_conversion_cut_off_before_its_end_is_forgotten(store: Store) -> None:
    begin(store)
    store.recover()
    assert streams(store) == ["OLD"]
    assert [path.name for path in store.root.iterdir()] == ["jetstream"]


def test_a_swap_cut_off_in_the_middle_is_finished(store: Store) -> None:
    begin(store)
    store.streams_folder.rename(store.root / "before-conversion")
    store.recover()
    assert streams(store) == ["NEW"]


def test_a_swap_cut_off_before_its_last_step_is_finished(store: Store) -> None:
    begin(store)
    store.streams_folder.rename(store.root / "before-conversion")
    (store.built / "jetstream").rename(store.streams_folder)
    store.recover()
    assert streams(store) == ["NEW"]
    assert [path.name for path in store.root.iterdir()] == ["jetstream"]
