"""Shells complete ``resolute`` with the script that it prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.cli import SUBCOMMANDS
from tests.harness.processes import REPOSITORY

# As the shell calls it when Tab is pressed behind the line; the last word is the one to complete.
BASH = """
eval "$(resolute completion bash)"
complete -p resolute >/dev/null || exit 9
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
read -r -a COMP_WORDS <<<"$1"
[ "${1% }" = "$1" ] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_python_argcomplete resolute "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
# Its completion works only in its line editor, so an interactive one runs in a terminal of its own and writes down what
# the script has it offer.
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "autoload -U compinit && compinit -u -d $2/dump"
zpty -w shell 'eval "$(resolute completion zsh)"'
zpty -w shell "_describe() { print -l -- \\${(P)2} >$2/offered }"
zpty -w -n shell "$1"$'\\t'
for try in {1..600}; do [[ -s $2/offered ]] && break; sleep 0.05; done
zpty -d shell
cat $2/offered
"""
FISH = "resolute completion fish | source; complete -C $argv[1]"

SHELLS = {"bash": ["-c", BASH, "bash"], "zsh": ["-f", "-c", ZSH, "zsh"], "fish": ["--no-config", "-c", FISH]}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed: apt-get install {request.param}")
    name: str = request.param
    return name


def offered(shell: str, line: str, folder: Path) -> set[str]:
    """What a shell offers behind a line, without descriptions."""
    # Only what the shells need: those of others may change what they offer.
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(folder),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }
    ended = subprocess.run(
        [shell, *SHELLS[shell], line, str(folder)],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    # bash has a space behind a word that is whole; zsh and fish have a description.
    return {line.split("\t")[0].split(":")[0].strip() for line in ended.stdout.splitlines() if line.strip()}


def test_shells_complete_subcommands_options_and_values(shell: str, tmp_path: Path) -> None:
    assert offered(shell, "resolute sta", tmp_path) == {"status"}
    assert offered(shell, "resolute --state /x re", _below(tmp_path, "a")) == {"reset", "restore"}
    assert offered(shell, "resolute up --po", _below(tmp_path, "b")) == {"--port"}
    assert offered(shell, "resolute up --passwords ", _below(tmp_path, "c")) == {"initial", "blank"}
    assert offered(shell, "resolute completion ", _below(tmp_path, "d")) == set(SHELLS)


def test_all_subcommands_are_offered(tmp_path: Path) -> None:
    assert offered("bash", "resolute ", tmp_path) == {each.name for each in SUBCOMMANDS}


def _below(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name
