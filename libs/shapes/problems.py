"""Problems of a configuration: all findings at once, each with the place where it was found.

Source: docs/reference/experiments.md 1.1 (error texts; clients print them verbatim).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from libs.errors import InvalidRequest

ROOT: Final = "<config>"


class Problem(NamedTuple):
    path: str
    """From the root of the configuration, for example ``<config>.bind_mounts[0]``."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class InvalidConfig(InvalidRequest):
    """An experiment configuration that cannot be accepted; the message is for the person who wrote it."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"invalid experiment configuration: {detail}")
        self.detail = detail


def missing(path: str, key: str) -> Problem:
    return Problem(path, f"{key} is a required property")


def unknown_key(path: str, key: str) -> Problem:
    return Problem(path, f'additionalProperties "{key}" not allowed')


def listing(problems: Iterable[Problem]) -> str:
    """One line per problem, sorted, without repetition."""
    return "\n".join(sorted({str(problem) for problem in problems}))
