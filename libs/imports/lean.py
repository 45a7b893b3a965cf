"""Imports libraries without what they load only because it is installed: memory that no service has a use for."""

from __future__ import annotations

import importlib
import sys
from typing import Final

_ABSENT: Final = object()


def import_without(module: str, *extras: str) -> None:
    """Import ``module`` as where ``extras`` are not installed, which it can do without; others can still import them.

    Nothing happens where ``module`` is not installed either, as in what guards tasks: it does without libraries.
    """
    if module in sys.modules:
        return
    found = {extra: sys.modules.get(extra, _ABSENT) for extra in extras}
    sys.modules.update(dict.fromkeys(extras))  # type: ignore[arg-type]  # None makes an import fail
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
    finally:
        for extra, before in found.items():
            del sys.modules[extra]
            if before is not _ABSENT:
                sys.modules[extra] = before  # type: ignore[assignment]
