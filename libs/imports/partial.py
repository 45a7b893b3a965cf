"""Imports of a package some of its modules only, for as long as nobody asks for the rest.

Some packages import in ``__init__`` everything that they offer, however little of it a program uses.

The rest is imported as a module of the package, ``__rest__``, whoever asks for it and in whatever thread: a second one
waits by the locks of the interpreter, as for any module that is being imported. Those know of a thread that waits for
what another one imports and is waited for by it, which would wait for ever for a lock of our own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # it would load what reads files in packages, and what that loads

_REST: Final = "__rest__"


def import_partly(package: str, parts: Mapping[str, Sequence[str]]) -> None:
    """From now on, an import of ``package`` imports only ``parts`` of it. Nothing happens where it is loaded already.

    parts  module of the package -> names in it that the package offers as its own
    Whoever asks the package for another name gets it: its own ``__init__`` is executed then.
    """
    if package not in sys.modules:
        sys.meta_path.insert(0, _Finder(package, parts))


class _Finder:
    def __init__(self, package: str, parts: Mapping[str, Sequence[str]]) -> None:
        self._package = package
        self._parts = parts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == f"{self._package}.{_REST}":
            return ModuleSpec(fullname, cast("Loader", _Rest()))
        if fullname != self._package:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Loader", _Loader(spec.loader, self._parts))
        return spec


class _Loader:
    def __init__(self, whole: Loader, parts: Mapping[str, Sequence[str]]) -> None:
        self._whole = whole
        self._parts = parts

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._whole.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        offered = vars(module)
        for part, names in self._parts.items():
            loaded = import_module(f"{module.__name__}.{part}")
            offered.update((name, getattr(loaded, name)) for name in names)
        # Last: modules of the package look for one another in it while they are imported.
        offered["__getattr__"] = self._rest_of(module)

    def complete(self, module: ModuleType) -> None:
        """Execute the ``__init__`` of the package."""
        get = vars(module)["__getattr__"]
        self._whole.exec_module(module)
        if vars(module)["__getattr__"] is get:  # it has none of its own
            del vars(module)["__getattr__"]

    def _rest_of(self, module: ModuleType) -> Callable[[str], Any]:
        """The function that modules are asked for names which they do not have (PEP 562)."""
        offered = vars(module)

        def get(name: str) -> Any:
            if not name.startswith("__"):  # the import system and tools ask for many that no package has
                # As a statement does it: that goes on where threads wait for one another in a circle.
                __import__(f"{module.__name__}.{_REST}")
                if offered.get("__getattr__") is not get:
                    return getattr(module, name)
                if name in offered:  # it is being executed, and what it imports asks
                    return offered[name]
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        return get


class _Rest:
    """Loads what the module of a package called ``__rest__`` stands for."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        package = sys.modules[module.__name__.rpartition(".")[0]]
        assert package.__spec__ is not None
        cast("_Loader", package.__spec__.loader).complete(package)
