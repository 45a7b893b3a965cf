"""Writes ``authorized_keys`` of a shell: every key of the user, with the environment of the container as options.

Source: docs/reference/harness-protocol.md 6.4. Standard library of Python 3.8 only.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

LEFT_OUT = ("_", "HOME", "TERM", "LANG")
NAME = re.compile("[A-Za-z0-9_]+")
"""What sshd takes as a name; for another one, as of exported functions, it refuses the whole key."""


def options(environment: Mapping[str, str]) -> str:
    """``environment="K=V"`` options, separated by commas; what sshd could not carry is left out."""
    return ",".join(
        f'environment="{name}={escape(value)}"' for name, value in environment.items() if is_carried(name, value)
    )


def is_carried(name: str, value: str) -> bool:
    """A backslash before the closing quote would take away its meaning, and sshd has no way to say otherwise."""
    is_sshs_own = name in LEFT_OUT or name.startswith("LC_")
    return not is_sshs_own and NAME.fullmatch(name) is not None and not value.endswith("\\")


def escape(value: str) -> str:
    return value.replace('"', '\\"').replace("\n", "\\n")


def main(source: str, target: str) -> None:
    prefix = options(os.environ)
    with open(source) as file:
        keys = [line.strip() for line in file if line.strip()]
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "w") as file:
        file.writelines(f"{prefix} {key}\n" for key in keys)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
