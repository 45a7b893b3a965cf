"""Evaluates expressions with the client's SDK; run by the interpreter beside ``det``.

Each line of the standard input is an expression as JSON, and each of the output what came of it: {"answer": text} or
{"refused": text}. Everything that an answer iterates over is read. With the argument ``methods``, prints the names of
all public methods and functions of the SDK instead.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any

from determined.common import experimental
from determined.common.experimental import resource_pool
from determined.experimental import client


def methods() -> list[str]:
    """Of the classes of the SDK that there are, and of its module of functions; but those that make objects of one."""
    names = {f"Determined.{name}" for name, each in vars(client).items() if _is_public(client, name, each)}
    for module in pkgutil.walk_packages(experimental.__path__, f"{experimental.__name__}."):
        loaded = importlib.import_module(module.name)
        for kind in vars(loaded).values():
            if inspect.isclass(kind) and kind.__module__ == module.name:
                names |= {f"{kind.__name__}.{name}" for name, each in vars(kind).items() if _is_method(name, each)}
    return sorted(names - {"Determined.login"})


def _is_public(module: Any, name: str, each: Any) -> bool:
    return inspect.isfunction(each) and each.__module__ == module.__name__ and not name.startswith("_")


def _is_method(name: str, each: Any) -> bool:
    return inspect.isfunction(each) and not name.startswith("_")


def evaluated(expression: str, names: dict[str, Any]) -> dict[str, str]:
    try:
        answer = eval(expression, names)
        return {"answer": str(list(answer) if isinstance(answer, Iterator) else answer)}
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    if sys.argv[1:] == ["methods"]:
        print(json.dumps(methods()))
    else:
        determined = client.Determined()
        names = {
            "determined": determined,
            "login": lambda user, password: client.Determined(user=user, password=password),
            "pool": lambda name: resource_pool.ResourcePool(determined._session, name),
        }
        for line in sys.stdin:
            with contextlib.redirect_stdout(sys.stderr):
                outcome = evaluated(json.loads(line), dict(names))
            print(json.dumps(outcome), flush=True)
