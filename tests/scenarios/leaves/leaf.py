"""What a row says about a leaf command of ``det``."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Final

UNAUTHENTICATED: Final = "Unauthenticated"


@dataclass(frozen=True)
class Leaf:
    """A command as it is typed with objects that there are, by their names in braces
    (``tests/integration/api/whole_client/objects.py``); it ends well, or with ``code`` for the reason in ``because``.

    formats      in which it can print what it prints as a table otherwise: json, yaml, csv
    chatty       it adds a line for people to them, the last one
    says         in what it prints
    unknown      in what it prints about objects that there are none of, where it names any, before it ends with
                 ``unknown_code``
    anonymous    in what it prints without a login; "" where it needs none, and does the same as with one
    answers      typed at its prompts
    logs_in      it reads or changes the login that the client remembers
    """

    command: str
    arguments: str = ""
    formats: str = ""
    chatty: bool = False
    says: str = ""
    unknown: str = "not found"
    unknown_code: int = 1
    anonymous: str = UNAUTHENTICATED
    answers: tuple[str, ...] = ()
    logs_in: bool = False
    code: int = 0
    because: str = ""

    @property
    def name(self) -> str:
        return f"{self.command} {self.arguments}".strip()

    @property
    def placeholders(self) -> list[str]:
        return [field for _, field, _, _ in string.Formatter().parse(self.arguments) if field]
