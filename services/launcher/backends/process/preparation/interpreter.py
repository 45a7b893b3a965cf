"""The interpreter of tasks, and the directories without which it does not run.

They may lie in a place that tasks have for themselves, ``/tmp`` for one, and are shown there. The path says too little:
it may be a link, or a script that executes another interpreter, and modules may lie anywhere; so the interpreter is
asked.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from libs.errors import InvalidRequest

log = structlog.get_logger()

ANSWER_LIMIT_S: Final = 30.0
_QUESTION: Final = """\
import json, sys
directories = [sys.prefix, sys.exec_prefix, sys.base_prefix, *sys.path]
print(json.dumps({"executable": sys.executable, "directories": directories}))
"""


class _Answer(Struct, frozen=True):
    executable: str
    directories: list[str]


def find_python(setting: str | None) -> str:
    """The interpreter of tasks, as an absolute path. Raises InvalidRequest when there is none."""
    found = shutil.which(setting or "python3")
    if found is None:
        raise InvalidRequest(f"no Python for tasks: '{setting or 'python3'}' cannot be executed; set process.python")
    return os.path.abspath(found)


async def needed_directories(python: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Directories that an interpreter needs when it runs with ``environment``, sorted.

    One that does not answer gets those that its path leads to; what is wrong with it shows in the first task.
    """
    directories = set(installation_roots(python))
    try:
        answer = await _ask(python, environment)
    except (OSError, msgspec.DecodeError) as error:
        log.warning("backend.interpreter_silent", python=python, problem=str(error) or type(error).__name__)
    else:
        directories.update(installation_roots(answer.executable), _existing(answer.directories))
    return tuple(sorted(directories | _without_links(directories)))


async def _ask(python: str, environment: Mapping[str, str]) -> _Answer:
    process = await asyncio.create_subprocess_exec(
        python,
        "-c",
        _QUESTION,
        cwd="/",
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), ANSWER_LIMIT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    return msgspec.json.decode(output, type=_Answer)


def _without_links(paths: Iterable[str]) -> set[str]:
    return {os.path.realpath(path) for path in paths}


def _existing(paths: Iterable[str]) -> set[str]:
    absolute = (os.path.normpath(path) for path in paths if os.path.isabs(path))
    return {path for path in absolute if os.path.isdir(path)} - {"/"}


def closed_to_others(program: str) -> str | None:
    """The first file or directory that keeps ordinary users from executing a program, through all links; or None."""
    for path in _links(program):
        for place in (*reversed([str(parent) for parent in Path(path).parents]), path):
            try:
                is_open = os.stat(place).st_mode & stat.S_IXOTH
            except OSError:
                return place
            if not is_open:
                return place
    return None


def closed_interpreters(*programs: str) -> str:
    """What keeps ordinary users from the first of ``programs`` that is closed to them, in words; empty for nothing."""
    for program in programs:
        if (place := closed_to_others(program)) is not None:
            return f"{place} keeps them from {program}"
    return ""


def installation_roots(python: str) -> list[str]:
    """Directories that a path of an interpreter leads to, sorted: its environment, and those behind its links."""
    paths = _links(python)
    # Of one that lies in a directory like /tmp/bin, what is beside that directory is none of its business.
    roots = {os.path.dirname(path) for path in paths} | {os.path.dirname(os.path.dirname(path)) for path in paths}
    return sorted({os.path.normpath(root) for root in roots} - {"/"})


def _links(path: str) -> list[str]:
    """A path, and those that its links lead to, the last without any."""
    paths = [os.path.abspath(path)]
    while os.path.islink(paths[-1]) and len(paths) < 10:
        paths.append(os.path.join(os.path.dirname(paths[-1]), os.readlink(paths[-1])))
    return [*paths, os.path.realpath(path)]
