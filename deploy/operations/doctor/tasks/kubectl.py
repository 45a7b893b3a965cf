"""What the cluster says to kubectl: no part of an installation may list what is in its namespace."""

from __future__ import annotations

import json
import subprocess
from typing import Any, Final

ANSWERS_WITHIN_S: Final = 10.0

Json = dict[str, Any]


class NotAnswered(Exception):
    """kubectl could not be asked; the message is its own."""


def kubectl(*arguments: str, may_be_missing: bool = False) -> list[Json]:
    """Items of what a command lists. ``may_be_missing``: the cluster may not know this kind of object."""
    command = ["kubectl", *arguments, "--output", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ANSWERS_WITHIN_S)
    except subprocess.TimeoutExpired as error:
        raise NotAnswered(f"kubectl did not answer within {ANSWERS_WITHIN_S:.0f} s") from error
    if done.returncode == 0:
        items: list[Json] = json.loads(done.stdout)["items"]
        return items
    if may_be_missing and "the server doesn't have a resource type" in done.stderr:
        return []
    raise NotAnswered(done.stderr.strip())
