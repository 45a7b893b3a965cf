"""Where two lists of answers differ, in a few lines each."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from tests.golden.answers import Answer

_LINES: Final = 12
_WIDTH: Final = 200


def differences(before: Sequence[Answer], after: Sequence[Answer]) -> list[str]:
    """One text for each answer that is not what it was; both lists are of the same reads in the same order."""
    return [
        "\n".join([str(one.read), *_described(one, other)])
        for one, other in zip(before, after, strict=True)
        if one != other
    ]


def _described(one: Answer, other: Answer) -> Iterator[str]:
    if one.status != other.status:
        yield f"  status {one.status} -> {other.status}"
    if one.headers != other.headers:
        yield f"  headers {one.headers} -> {other.headers}"
    if one.body == other.body:
        return
    lines = difflib.unified_diff(_lines(one.body), _lines(other.body), n=1, lineterm="")
    said = [line for line in lines if not line.startswith(("---", "+++"))]
    yield from (f"  {line[:_WIDTH]}" for line in islice(said, _LINES))
    if not said:
        yield "  the same values, written otherwise"
    if len(said) > _LINES:
        yield f"  and {len(said) - _LINES} more lines"


def _lines(body: str) -> list[str]:
    """A value a line where it is JSON, in the order in which it came."""
    try:
        return [line for each in body.splitlines() for line in json.dumps(json.loads(each), indent=1).splitlines()]
    except ValueError:
        return body.splitlines()
