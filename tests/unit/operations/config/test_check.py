"""``resolute config check`` names the key and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import cli
from deploy.operations.config.command import kind_of
from deploy.operations.config.mistakes import Mistake
from deploy.operations.config.values import SCHEMA, read_schema, values_mistakes

CHART = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "masterPort": {"type": "integer"},
        "resourcePools": {"type": "array", "items": {"additionalProperties": False, "properties": {"pool_name": {}}}},
        "telemetry": {"type": "object"},
    },
}


def check(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Any, *more: str) -> tuple[object, Any]:
    file, schema = tmp_path / "file.yaml", tmp_path / "schema.json"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    schema.write_text(json.dumps(CHART))
    with pytest.raises(SystemExit) as ended:
        cli.main(["config", "check", str(file), "--json", "--schema", str(schema), *more])
    report = json.loads(capsys.readouterr().out)
    return ended.value.code, [(each["kind"], each["key"], each["says"]) for each in report["mistakes"]]


def test_good_file_has_no_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path, capsys, {"cluster_name": "research"}) == (0, [])
    assert check(tmp_path, capsys, {"masterPort": 8080}) == (0, [])


def test_key_that_means_nothing_here_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = check(tmp_path, capsys, {"port": 8080, "resource_manager": {"type": "agent"}})
    assert code == 0
    assert [(kind, key) for kind, key, _ in said] == [("warning", "port"), ("warning", "resource_manager.type")]


def test_a_page_that_is_not_on_this_machine_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = check(tmp_path, capsys, {"web": {"root": f"{tmp_path}/page"}})
    why = f"{tmp_path}/page is no folder; an api on this machine does not start with it"
    assert (code, said) == (0, [("warning", "web.root", why)])
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "index.html").write_text("built")
    assert check(tmp_path, capsys, {"web": {"root": f"{tmp_path}/page"}}) == (0, [])


@pytest.mark.parametrize(
    ("content", "key", "says"),
    [
        ({"cluster_nmae": "x"}, "cluster_nmae", "nothing of this name is known; did you mean cluster_name?"),
        (
            {"resource_pools": [{"pool_name": "a", "scheduler": {"fiting_policy": "best"}}]},
            "resource_pools[0].scheduler.fiting_policy",
            "nothing of this name is known; did you mean fitting_policy?",
        ),
        ({"launch_error": {"a": 1}}, "launch_error", "Expected `bool`, got `object`"),
        (
            {"security": {"tls": {"cert": "x"}}},
            "",
            "security.tls: cert and key are needed together, or neither of them",
        ),
    ],
)
def test_error_of_a_cluster_configuration_names_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Any, key: str, says: str
) -> None:
    assert check(tmp_path, capsys, content) == (1, [("error", key, says)])


def test_all_errors_of_values_are_named_with_the_nearest_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"masterPrt": 1, "masterPort": "x", "resourcePools": [{"pool_nam": "a"}], "xyzzy": 1}
    assert check(tmp_path, capsys, values) == (
        1,
        [
            ("error", "masterPort", "'x' is not of type 'integer'"),
            ("error", "masterPrt", "the chart has no such value; did you mean masterPort?"),
            ("error", "resourcePools[0].pool_nam", "the chart has no such value; did you mean pool_name?"),
            ("error", "xyzzy", "the chart has no such value; remove it"),
        ],
    )


def test_kind_can_be_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kind_of({"telemetry": {}}) == "cluster"
    assert check(tmp_path, capsys, {"telemetry": 1}, "--as", "values")[0] == 1


def test_text_says_whether_the_file_can_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "master.yaml"
    for content, code, last in (("a: [", 1, "cannot be used as it is"), ("port: 1", 0, "is good to use")):
        file.write_text(content)
        with pytest.raises(SystemExit) as ended:
            cli.main(["config", "check", str(file)])
        assert (ended.value.code, capsys.readouterr().out.splitlines()[-1]) == (code, f"{file} {last}")


@pytest.mark.skipif(not SCHEMA.exists(), reason="there is no chart yet in deploy/helm")
def test_values_of_the_chart_itself_are_good() -> None:
    values = yaml.safe_load((SCHEMA.parent / "values.yaml").read_text())
    assert values_mistakes(values, read_schema(SCHEMA)) == []
    assert values_mistakes({"resourcePool": []}, read_schema(SCHEMA)) == [
        Mistake("error", "resourcePool", "the chart has no such value; did you mean resourcePools?")
    ]
