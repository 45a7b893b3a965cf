"""A reader at a terminal: saves the blocks of a page that are files, and types those that are commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.harness.installed_client import client_python
from tests.harness.pages.blocks import Block

Word = str | Callable[["Shell"], str]
"""What stands for a word of a page; a function is asked when the word is typed, and may look at what was said."""

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
NO_WORDS: Final[Mapping[str, Word]] = MappingProxyType({})
NO_ANSWERS: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})


class Shell:
    """A bash with ``det`` and ``resolute`` on its PATH. What a command exports, and where it goes, holds for the next.

    folder   where it begins
    home     where the client remembers logins
    env      added to the environment of the tests
    prelude  typed before each command; functions in it stand for programs
    skipped  how commands begin that are not typed
    """

    def __init__(
        self,
        folder: Path,
        home: Path,
        *,
        env: Mapping[str, str] = NOTHING,
        prelude: str = "",
        skipped: Iterable[str] = (),
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.said: dict[str, str] = {}
        self._start = folder
        self._kept = home / "shell-state"
        self._prelude = prelude
        self._skipped = tuple(skipped)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("DET_", "RESOLUTE_"))},
            "PATH": f"{client_python().parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "DET_DEBUG_CONFIG_PATH": str(home),
            "RESOLUTE_TASK_PYTHON": str(client_python()),
            "NO_PROXY": "*",
            "COLUMNS": "400",
            "PYTHONWARNINGS": "ignore",
            **env,
        }

    @property
    def folder(self) -> Path:
        """Where it is."""
        return Path(self("pwd").rstrip("\n"))

    def __call__(self, command: str, *, answers: Sequence[str] = (), code: int = 0, timeout_s: float = 200) -> str:
        """What a command prints that ends with ``code``; AssertionError with everything it said otherwise."""
        kept = shlex.quote(str(self._kept))
        script = (
            f"[ ! -f {kept} ] || . {kept}\n"
            f'trap \'{{ export -p; printf "cd %q\\n" "$PWD"; }} > {kept}\' EXIT\n'
            f"set -o pipefail\n{self._prelude}\n{command}"
        )
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._start,
            env=self._environment,
            input="".join(f"{answer}\n" for answer in answers),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            # Without a terminal of its own, the client reads passwords from its input.
            start_new_session=True,
            check=False,
        )
        assert done.returncode == code, f"{command}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def save(self, block: Block) -> Path:
        """Write a block to the file that its title names, as seen from where the shell is."""
        assert block.file, f"{block} does not say which file it is"
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        return path

    def type(
        self, block: Block, named: Mapping[str, Word] = NO_WORDS, answers: Mapping[str, Sequence[str]] = NO_ANSWERS
    ) -> None:
        """Type the commands of a block, one after the other. What each printed is in ``said``.

        named    words of the page -> what a reader types in their place
        answers  how a command begins -> what is typed at its prompts
        """
        for command in commands(block.text):
            if command.startswith(self._skipped):
                continue
            typed = command
            for word, ours in named.items():
                typed = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _, ours=ours: self._word(ours), typed)
            given = next((typed for begins, typed in answers.items() if command.startswith(begins)), ())
            self.said[command] = self(typed, answers=given)

    def said_by(self, begins: str) -> str:
        """What the last command printed that begins like this."""
        return next(text for command, text in reversed(self.said.items()) if command.startswith(begins))

    def follow(
        self,
        blocks: Iterable[Block],
        named: Mapping[str, Word] = NO_WORDS,
        answers: Mapping[str, Sequence[str]] = NO_ANSWERS,
    ) -> None:
        """Save the blocks that are files, and type the others."""
        for block in blocks:
            if block.file:
                self.save(block)
            else:
                self.type(block, named, answers)

    def _word(self, ours: Word) -> str:
        return ours if isinstance(ours, str) else ours(self)


def commands(text: str) -> Iterator[str]:
    """Commands of a block: lines, and lines together that are one command."""
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        command = "\n".join(lines)
        if command.strip() and not line.endswith("\\") and _is_whole(command):
            yield command
            lines = []
    if "".join(lines).strip():
        raise ValueError(f"not a command: {lines}")


def _is_whole(command: str) -> bool:
    """Whether bash would begin with it, instead of asking for the next line."""
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, timeout=20, check=False)
    return done.returncode == 0 and not done.stderr
