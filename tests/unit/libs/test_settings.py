"""Settings from file and environment, and what is said about wrong ones."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pytest
import yaml
from msgspec import Meta, Struct

from libs.settings import InvalidSettings, load


class Queue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    plan_interval_s: Annotated[float, Meta(gt=0)] = 0.1
    policy: Literal["priority", "fair_share"] = "priority"
    pools: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    paused: bool = False


class Database(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str
    password: str | None = None


class Bus(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    password: str | None = None
    password_file: str | None = None


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    database: Database
    queue: Queue = Queue()
    bus: Bus = Bus()
    port: int = 8080


class Case(NamedTuple):
    name: str
    environ: dict[str, str]
    file: Any
    value: str
    expected: object


URL = {"RESOLUTE_DATABASE__URL": "pg://here"}
CASES = [
    Case("defaults", URL, None, "queue.plan_interval_s", 0.1),
    Case("file", URL, {"queue": {"plan_interval_s": 2}}, "queue.plan_interval_s", 2.0),
    Case(
        "environment wins",
        URL | {"RESOLUTE_QUEUE__PLAN_INTERVAL_S": "3"},
        {"queue": {"plan_interval_s": 2}},
        "queue.plan_interval_s",
        3.0,
    ),
    Case("top level", URL | {"RESOLUTE_PORT": "9"}, None, "port", 9),
    Case("truth", URL | {"RESOLUTE_QUEUE__PAUSED": "true"}, None, "queue.paused", True),
    Case("list", URL | {"RESOLUTE_QUEUE__POOLS": "[a, b]"}, None, "queue.pools", ("a", "b")),
    Case("mapping", URL | {"RESOLUTE_QUEUE__LABELS": "{a: b}"}, None, "queue.labels", {"a": "b"}),
    Case(
        "text that looks like a number stays text",
        URL | {"RESOLUTE_DATABASE__PASSWORD": "0123"},
        None,
        "database.password",
        "0123",
    ),
    Case("literal", URL | {"RESOLUTE_QUEUE__POLICY": "fair_share"}, None, "queue.policy", "fair_share"),
    Case("sections of other services are passed over", URL | {"RESOLUTE_PROXY__PORT": "1"}, None, "port", 8080),
    Case("empty file", URL, "", "port", 8080),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_last_source_wins(case: Case, tmp_path: Path) -> None:
    assert attrgetter(case.value)(load(Settings, write(tmp_path, case.file), case.environ)) == case.expected


def test_value_is_read_from_the_file_that_a_variable_names(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("0123\n")
    (tmp_path / "port").write_text("9")
    named = {"RESOLUTE_DATABASE__PASSWORD_FILE": f"{tmp_path}/password", "RESOLUTE_PORT_FILE": f"{tmp_path}/port"}
    settings = load(Settings, None, URL | named | {"RESOLUTE_DATABASE__PASSWORD": "older"})
    assert (settings.database.password, settings.port) == ("0123", 9)


def test_field_that_names_a_file_is_no_value_in_a_file() -> None:
    settings = load(Settings, None, URL | {"RESOLUTE_BUS__PASSWORD_FILE": "/there"})
    assert settings.bus == Bus(password_file="/there")


def test_sections_of_others_are_passed_over_on_request(tmp_path: Path) -> None:
    path = write(tmp_path, {"port": 9, "intake": {"port": 1}})
    assert load(Settings, path, URL, others_sections=True).port == 9
    with pytest.raises(InvalidSettings, match="unknown setting intake"):
        load(Settings, path, URL)


class Mistake(NamedTuple):
    name: str
    environ: dict[str, str]
    file: Any
    said: str


MISTAKES = [
    Mistake(
        "missing", {}, {"database": {}},
        "setting database.url is required: set RESOLUTE_DATABASE__URL, or add it to",
    ),
    Mistake(
        "unknown in file", URL, {"queue": {"plan_intervals": 1}},
        "unknown setting queue.plan_intervals in .*did you mean plan_interval_s?",
    ),
    Mistake(
        "unknown in environment", URL | {"RESOLUTE_QUEUE__POLICI": "x"}, None,
        "RESOLUTE_QUEUE__POLICI sets the unknown queue.polici; did you mean policy?",
    ),
    Mistake(
        "wrong type", URL | {"RESOLUTE_PORT": "many"}, None,
        "setting port: expected `int`, got `str`; correct RESOLUTE_PORT or",
    ),
    Mistake(
        "out of range", URL | {"RESOLUTE_QUEUE__PLAN_INTERVAL_S": "0"}, None,
        "setting queue.plan_interval_s: expected `float` > 0",
    ),
    Mistake(
        "not an alternative", URL | {"RESOLUTE_QUEUE__POLICY": "x"}, None,
        "setting queue.policy: invalid enum value 'x'",
    ),
    Mistake(
        "below a leaf", URL | {"RESOLUTE_PORT__HTTP": "1"}, None,
        "RESOLUTE_PORT__HTTP names nothing: port has no parts",
    ),
    Mistake("value where a section is", URL, {"database": "x"}, "setting database must be a section"),
    Mistake("no mapping", URL, [1], "must be a mapping of sections"),
    Mistake(
        "file that is not there", URL | {"RESOLUTE_PORT_FILE": "/nowhere/port"}, None,
        "RESOLUTE_PORT_FILE: /nowhere/port cannot be read: No such file",
    ),
    Mistake("no YAML", URL | {"RESOLUTE_QUEUE__POOLS": "[a"}, None, "RESOLUTE_QUEUE__POOLS is not YAML"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=attrgetter("name"))
def test_mistakes_are_named_with_the_remedy(mistake: Mistake, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=mistake.said):
        load(Settings, write(tmp_path, mistake.file), mistake.environ)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"nowhere\.yaml cannot be read: No such file"):
        load(Settings, tmp_path / "nowhere.yaml", URL)


def write(folder: Path, content: Any) -> Path | None:
    if content is None:
        return None
    path = folder / "settings.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path
