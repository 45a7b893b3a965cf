"""Calls functions of the client's bindings; run by the interpreter beside ``det``.

Arguments are the master and the token of an administrator. Each line of the standard input is [function, arguments by
name], and each of the output what came of it: {"answer": name of its type} or {"refused": text}. A stream is read up to
its first item or its end. Without arguments, prints the names of all functions.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from determined.common import api
from determined.common.api import bindings

VERBS = ("get", "post", "put", "patch", "delete")


def functions() -> dict[str, Any]:
    """All that take a session."""
    return {
        name: each
        for name, each in vars(bindings).items()
        if inspect.isfunction(each)
        and name.partition("_")[0] in VERBS
        and "session" in inspect.signature(each).parameters
    }


def typed(value: Any, hint: Any) -> Any:
    """JSON as what a parameter of the bindings takes."""
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not type(None)]
    for kind in kinds:
        if isinstance(value, dict) and hasattr(kind, "from_json"):
            return kind.from_json(value)
        if isinstance(value, str) and inspect.isclass(kind) and issubclass(kind, bindings.DetEnum):
            return kind(value)
    return value


def call(session: api.Session, name: str, arguments: dict[str, Any]) -> dict[str, str]:
    function = functions()[name]
    hints = get_type_hints(function, localns={"api": api})
    try:
        answer = function(session, **{key: typed(value, hints[key]) for key, value in arguments.items()})
        if isinstance(answer, Iterator):
            return {"answer": f"stream of {type(next(answer, None)).__name__}"}
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    return {"answer": type(answer).__name__}


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(json.dumps(sorted(functions())))
    else:
        session = api.Session(sys.argv[1], "admin", sys.argv[2], None, max_retries=0)
        for line in sys.stdin:
            name, arguments = json.loads(line)
            print(json.dumps(call(session, name, arguments)), flush=True)
