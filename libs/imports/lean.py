"""Imports libraries without what they load only because it is installed: memory that no service has a use for."""

from __future__ import annotations

import importlib
import sys
from typing import Final

_ABSENT: Final = object()


def import_without(module: str, extra: str) -> None:
    """Import ``module`` as where ``extra`` is not installed, which it can do without; others can still import it.

    Nothing happens where ``module`` is not installed either, as in what guards tasks: it does without libraries.
    """
    if module in sys.modules:
        return
    found = sys.modules.get(extra, _ABSENT)
    sys.modules[extra] = None  # type: ignore[assignment]  # which makes its import fail
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
    finally:
        del sys.modules[extra]
        if found is not _ABSENT:
            sys.modules[extra] = found  # type: ignore[assignment]
