"""Finds the lines of a log that policies and webhooks ask for. Pure. Source: docs/reference/logs.md 7.2, 8.

The regular expressions are users' and the lines anybody's, so RE2 matches them, in time linear in the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import re2
from msgspec import Struct

from libs.config.parts.log_policies import QUIETLY
from libs.events.logs import LogLine
from libs.loglines.message import readable

_OWN_CONFIGURATION: Final = b'"log_policies":'
"""The harness prints the configuration of its experiment, in which every pattern matches itself."""
_PLAIN: Final = re.compile(r"[\w .*+,:;<>=/'\"%#@&!~-]*")
"""Patterns that can match a text of several lines only within one of them."""


class LogPolicy(Struct, frozen=True, kw_only=True):
    """One of ``log_policies`` of a configuration, without those that only turn another off."""

    pattern: str
    name: str | None = None
    action: str | None = None


class HasPattern(Protocol):
    @property
    def pattern(self) -> str: ...


Watched = TypeVar("Watched", bound=HasPattern)


class Match(Struct, Generic[Watched], frozen=True):
    policy: Watched
    line: LogLine


class Patterns(Generic[Watched]):
    """Compiled together, so that the number of policies hardly matters. One that is no regular expression is left out:
    configurations from before they were checked may have it."""

    def __init__(self, policies: Iterable[Watched]) -> None:
        self._policies: list[Watched] = []
        self._set: Any = re2.Set.SearchSet(QUIETLY)
        for policy in policies:
            try:
                self._set.Add(policy.pattern)
            except re2.error:
                continue
            self._policies.append(policy)
        if self._policies:
            self._set.Compile()
        self._are_plain = all(_PLAIN.fullmatch(policy.pattern) for policy in self._policies)

    def matches(self, lines: Sequence[LogLine]) -> Iterator[Match[Watched]]:
        """Every policy with every line in which its pattern is found, in the order of the lines."""
        if not self._policies or (self._are_plain and not self._found_in(b"".join(line.log for line in lines))):
            return
        for line in lines:
            if _OWN_CONFIGURATION not in line.log:
                for index in sorted(self._found_in(line.log)):
                    yield Match(self._policies[index], line)

    def _found_in(self, log: bytes) -> list[int]:
        return self._set.Match(readable(log)) or []
