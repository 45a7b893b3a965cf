"""What schemathesis is told of the system: which ids there are, what is left alone, which failures are expected.

Loaded by schemathesis in an environment of its own, so nothing of ours is imported but the data beside it.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

import schemathesis

from tests.integration.api.fuzz.knowledge import EXPECTED, QUIET

WORLD = json.loads(os.environ["RESOLUTE_FUZZ_WORLD"])
KEPT: int = WORLD["kept"]
ALL: int = WORLD["all"]
CALLER: int = WORLD["caller"]
TEXTS: dict[str, str] = WORLD["texts"]


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Half of all ids are those of something that exists: behind a 404 there is nothing to be found."""
    spared = case.operation.method.upper() == "DELETE" or case.operation.path.endswith(("/delete", "/rm"))
    for name, value in (case.path_parameters or {}).items():
        case.path_parameters[name] = known(name, value, spared=spared)
    if isinstance(case.query, dict):
        case.query.update({name: value for name, value in QUIET.items() if name in case.query})
    case.body = with_known(case.body, spared=spared)


@schemathesis.hook
def filter_failure(context: Any, failure: Any, case: Any, response: Any) -> bool:
    """A failure that is expected is none."""
    text = response.text if response is not None else ""
    status = response.status_code if response is not None else 0
    return not any(expected.covers(status, case.operation.label, text) for expected in EXPECTED)


def known(name: str, value: Any, *, spared: bool) -> Any:
    """A value that stands for an id; ``spared``: not of what other requests are to find.

    The caller's own, who would lock himself out, is another's: schemathesis takes ids from answers, also as text.
    """
    if str(CALLER) in str(value):
        return 1
    drawn = zlib.crc32(repr(value).encode("utf-8", "surrogatepass"))
    if isinstance(value, bool) or drawn % 2:
        return value
    if isinstance(value, int):
        return KEPT + 1 + drawn // 2 % (ALL - KEPT) if spared else 1 + drawn // 2 % KEPT
    return TEXTS.get(name, value) if isinstance(value, str) and not spared else value


def with_known(value: Any, name: str = "", *, spared: bool) -> Any:
    """A body with ids that exist, and nowhere the caller's."""
    if isinstance(value, dict):
        return {key: with_known(item, key, spared=spared) for key, item in value.items()}
    if isinstance(value, list):
        return [with_known(item, name, spared=spared) for item in value]
    if name.lower().endswith(("id", "ids")) or name in TEXTS:
        return known(name.removesuffix("s"), value, spared=spared)
    return value
