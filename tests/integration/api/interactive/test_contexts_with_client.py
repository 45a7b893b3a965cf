"""Files and configurations as the client sends them: what it leaves out, what it refuses, and what arrives
(docs/reference/tasks-and-cli.md 2.6 and 2.15)."""

from __future__ import annotations

import base64
import io
import re
import tarfile
from pathlib import Path

import httpx
import pytest
import yaml

from tests.harness.det import Det

MEGABYTE = 1 << 20


def launched(det: Det, *arguments: str) -> str:
    printed = det("command", "run", "-d", "--config", "resources.slots=0", *arguments, "true").out
    return re.findall(r"[0-9a-f-]{36}", printed)[-1]


def files_of(client: httpx.Client, task: str) -> dict[str, tarfile.TarInfo]:
    packed = client.get(f"/api/v1/tasks/{task}/context_directory").json()["b64Tgz"]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed))) as archive:
        return {member.name: member for member in archive.getmembers()}


@pytest.fixture
def context(tmp_path: Path) -> Path:
    (tmp_path / "hello.py").write_text("print('hello')\n")
    return tmp_path


def test_a_context_beyond_the_limit_is_not_sent_and_what_is_ignored_does_not_count(
    det: Det, user: httpx.Client, context: Path
) -> None:
    with (context / "large.bin").open("wb") as large:
        large.truncate(120 * MEGABYTE)
    refused = det.fails("command", "run", "-d", "-c", str(context), "true")
    assert "maximum allowed size" in refused.out + refused.err
    (context / ".detignore").write_text("*.bin\n")
    task = launched(det, "-c", str(context))
    assert files_of(user, task).keys() - {".detignore"} == {"hello.py"}


def test_links_arrive_as_what_they_lead_to(det: Det, user: httpx.Client, context: Path) -> None:
    (context / "link.py").symlink_to("hello.py")
    found = files_of(user, launched(det, "-c", str(context)))
    assert (found["link.py"].isfile(), found["link.py"].size) == (True, len("print('hello')\n"))


def test_single_files_and_folders_go_along_with_include(
    det: Det, user: httpx.Client, context: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "startup-hook.sh"
    other.write_text("true\n")
    found = files_of(user, launched(det, "-c", str(context), "--include", str(other)))
    assert {"hello.py", "startup-hook.sh"} <= found.keys()


CONFIGS = [
    (["resources.shm_size=24576"], {"resources": {"shm_size": 24576}}),
    (["resources.shm_size=1.5g"], {"resources": {"shm_size": 1610612736}}),
    (["idle_timeout=90s"], {"idle_timeout": "1m30s"}),
    (["debug=true", "resources.weight=2.5"], {"debug": True, "resources": {"weight": 2.5}}),
    (["environment.image={cpu: a, gpu: b}"], {"environment": {"image": {"cpu": "a", "cuda": "b"}}}),
    (["environment.environment_variables=[A=1, B]"], {"environment": {"environment_variables": {"cpu": ["A=1", "B"]}}}),
    (["resources.priority=7"], {"resources": {"priority": 7}}),
    (["slurm.sbatch_args=-n1,-N2"], {"slurm": {"sbatch_args": ["-n1", "-N2"]}}),
]


@pytest.mark.parametrize(("options", "wanted"), CONFIGS)
def test_configuration_on_the_command_line_comes_back_from_det_config(
    det: Det, options: list[str], wanted: dict[str, object]
) -> None:
    task = launched(det, *(word for option in options for word in ("--config", option)))
    _check_holds(wanted, yaml.safe_load(det("command", "config", task).out))


def _check_holds(wanted: object, found: object) -> None:
    if isinstance(wanted, dict):
        assert isinstance(found, dict)
        for key, value in wanted.items():
            _check_holds(value, found[key])
    else:
        assert found == wanted


def test_describe_says_it_in_a_table_in_csv_and_in_json(det: Det) -> None:
    task = launched(det)
    assert len(det("command", "describe", task).out.strip().splitlines()) == 3
    assert len(det("command", "describe", task, "--csv").out.strip().splitlines()) == 2
    assert det("command", "describe", task, "--json").json()["id"] == task


@pytest.mark.parametrize("noun", ["command", "notebook", "shell"])
def test_templates_that_nobody_has_and_keys_that_nobody_knows_are_named(det: Det, noun: str) -> None:
    verb, words = ("run", ["true"]) if noun == "command" else ("start", [])
    refused = det.fails(noun, verb, "-d", "--template", "nobody-s", *words)
    assert "template 'nobody-s' not found" in refused.err
    refused = det.fails(noun, verb, "-d", "--config", "resources.slotz=1", *words)
    assert 'unknown field "slotz"' in refused.err
