"""The stages of the images: what they begin with, install and run, without building them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parents[4]
IMAGES: Final = ROOT / "deploy" / "images"
SERVICES: Final = ("api", "scheduler", "launcher", "logs")
TARGETS: Final = (*SERVICES, "tools", "process-launcher", "nats", "postgres")
SECRET: Final = re.compile(r"password|token|secret|credential", re.IGNORECASE)


class Stage(NamedTuple):
    base: str
    instructions: list[tuple[str, str]]

    def all_of(self, keyword: str) -> list[str]:
        return [arguments for word, arguments in self.instructions if word == keyword]


def read_stages() -> tuple[list[tuple[str, str]], dict[str, Stage]]:
    """What stands before the first stage, and the stages by name."""
    text = re.sub(r"^#.*\n", "", (IMAGES / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    before: list[tuple[str, str]] = []
    stages: dict[str, Stage] = {}
    current = before
    for line in lines:
        word, _, arguments = line.partition(" ")
        assert word.isupper(), line
        if word == "FROM":
            base, name = arguments.split(" AS ")
            stages[name] = Stage(base, current := [])
        else:
            current.append((word, arguments))
    return before, stages


BEFORE, STAGES = read_stages()


def chain(name: str) -> list[Stage]:
    """A stage, and those that it begins with, the first of them first."""
    stage = STAGES[name]
    return [*(chain(stage.base) if stage.base in STAGES else []), stage]


def test_the_base_image_is_an_argument() -> None:
    assert ("ARG", "BASE=python:3.13-slim") in BEFORE
    assert {stage.base for stage in STAGES.values() if stage.base not in STAGES} == {"${BASE}"}


def test_every_part_of_the_system_has_a_stage() -> None:
    assert set(TARGETS) <= STAGES.keys()


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_runs_as_an_ordinary_user_and_says_what_it_is(target: str) -> None:
    stages = chain(target)
    labels = " ".join(label for stage in stages for label in stage.all_of("LABEL"))
    assert [user for stage in stages for user in stage.all_of("USER")][-1] == "10001:10001"
    assert f'title="resolute-{target}"' in labels
    assert 'version="${VERSION}"' in labels
    assert 'revision="${REVISION}"' in labels
    assert not SECRET.search(" ".join(stages[-1].all_of("CMD")))


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_what_gets_the_signal_to_end(service: str) -> None:
    """A shell in between would not pass it on."""
    assert STAGES[service].all_of("CMD") == [f'["python", "-m", "services.{service}.main"]']


def test_nothing_secret_is_an_argument_or_a_variable_of_an_image() -> None:
    said = [text for stage in STAGES.values() for word in ("ARG", "ENV") for text in stage.all_of(word)]
    assert [text for text in said if SECRET.search(text)] == []


def test_what_the_stages_copy_is_part_of_the_build_context() -> None:
    rules = (ROOT / ".dockerignore").read_text().split()
    let_through = [rule[1:] for rule in rules if rule.startswith("!")]
    for stage in STAGES.values():
        for arguments in stage.all_of("COPY"):
            if arguments.startswith("--from="):
                assert arguments.split()[0].removeprefix("--from=") in STAGES
                continue
            for source in arguments.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert any(fnmatch(source.split("/")[0], rule) for rule in let_through), source


def pins(lock: Path) -> set[str]:
    """``name==version`` of each package, with what it depends on (``; python_version ...``)."""
    lines = [line.removesuffix(" \\") for line in lock.read_text().splitlines() if line[:1].isalnum()]
    assert len(lines) == len(re.findall(r"\n\S.*(?:\n    --hash=\S+(?: \\)?)+", "\n" + lock.read_text())), "hashes"
    return {line.partition(" ;")[0] for line in lines}


@pytest.mark.parametrize("lock", sorted((IMAGES / "locks").glob("*.lock")), ids=lambda path: path.stem)
def test_images_get_the_versions_that_are_tested(lock: Path) -> None:
    tested = {"client": ROOT / "client-requirements.lock", "uv": lock}.get(lock.stem, ROOT / "requirements.lock")
    assert pins(lock) <= pins(tested)


@pytest.mark.parametrize("image", [*SERVICES, "tools"])
def test_an_image_has_the_packages_of_its_part_only(image: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    wanted = named(project["dependencies"]) | named(extras.get(image, []))
    installed = named(pins(IMAGES / "locks" / f"{image}.lock"))
    assert wanted <= installed
    assert not installed & named(extras["dev"] + extras["local"]) - wanted


def named(requirements: Iterable[str]) -> set[str]:
    """Names of packages without extras and versions."""
    return {re.split(r"[<>=\[]", requirement)[0].lower() for requirement in requirements}
