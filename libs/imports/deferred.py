"""Modules that libraries import and hardly ever use: they are loaded when somebody does.

A library imports a module for what few of its users ask for, with all that this module imports in turn. Its import
statements find a stand-in instead, which loads the module with the first use.

Several threads import at once. So nothing that others see is changed for the time of an import: stand-ins are not in
``sys.modules``, which nobody could change and change back without a thread that imports the same module meanwhile. They
are found by the import statements of one module alone, which ask what is called ``__import__`` among its builtins; and
a module that they load is imported as ever, under the locks that the interpreter has for each. No lock of this module
could be waited for by a thread that holds one of those, and keep another waiting that holds this one.
Source: https://docs.python.org/3/reference/import.html#replacing-the-standard-import-system
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # it would load what reads files in packages, and what that loads

Deferred = Mapping[str, Sequence[str] | Mapping[str, Callable[..., Any]]]


def defer_imports(importers: Mapping[str, Deferred]) -> None:
    """From now on, these modules find stand-ins of what they import, unless it is loaded already.

    importers  module -> what it imports -> what it takes from there and calls: what the call returns is made when it is
               used, or is what a function says that is given for it. Other names load what they are taken from at once
    """
    sys.meta_path.insert(0, _Finder(importers))


class _Finder:
    def __init__(self, importers: Mapping[str, Deferred]) -> None:
        self._importers = importers

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        deferred = self._importers.get(fullname)
        if deferred is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = cast("Loader", _Loader(spec.loader, deferred))
        return spec


class _Loader:
    def __init__(self, whole: Loader, deferred: Deferred) -> None:
        self._whole = whole
        self._deferred = deferred

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._whole.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._whole  # whoever asks it for its source gets that
        name, offered = module.__name__, vars(module)
        _views[name] = _View(self._deferred)
        offered["__builtins__"] = _builtins
        try:
            self._whole.exec_module(module)
        finally:
            del _views[name]
            offered["__builtins__"] = vars(builtins)  # functions of the module keep what they were defined with


class _View:
    """What the import statements of one module find, while it is executed."""

    def __init__(self, deferred: Deferred) -> None:
        self._stand_ins = {name: _StandIn(name, called) for name, called in deferred.items() if name not in sys.modules}
        self._packages: dict[str, _Package] = {}
        for name, stand_in in self._stand_ins.items():
            found: ModuleType = stand_in
            package, _, child = name.rpartition(".")
            while package:
                import_module(package)
                within = self._packages.setdefault(package, _Package(package))
                setattr(within, child, found)
                found = within
                package, _, child = package.rpartition(".")

    def find(self, name: str, wanted: Sequence[str]) -> ModuleType | None:
        """What ``__import__`` returns for ``name``, of which ``wanted`` is taken; None for what is not deferred."""
        if wanted:
            package = self._packages.get(name)
            is_deferred = package is not None and any(each in vars(package) for each in wanted)
            return package if is_deferred else self._stand_ins.get(name)
        top = name.partition(".")[0]  # ``import a.b`` takes ``a``, of which ``a.b`` is asked later
        return self._packages.get(top) or self._stand_ins.get(top)

    def is_stand_in(self, name: str) -> bool:
        return name in self._stand_ins


_views: Final[dict[str, _View]] = {}
"""By the name of the module that is being executed, which one thread does at a time."""


def _import(
    name: str,
    globals: Mapping[str, Any] | None = None,  # as the interpreter and its users call them
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    view = _views.get(globals.get("__name__", "")) if globals is not None and not level else None
    if view is None:
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    found = view.find(name, fromlist or ())
    if not view.is_stand_in(name):
        others = [each for each in fromlist or () if not view.is_stand_in(f"{name}.{each}")]
        imported = builtins.__import__(name, globals, locals, others, level)
        return imported if found is None else found
    assert found is not None
    return found


_builtins: Final = {**vars(builtins), "__import__": _import}


class _Package(ModuleType):
    """A package with stand-ins of some of its modules."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules[self.__name__], name)


class _StandIn(ModuleType):
    def __init__(self, name: str, called: Sequence[str] | Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(name)
        given = called if isinstance(called, Mapping) else {each: self._maker(each) for each in called}
        for each, function in given.items():
            setattr(self, each, function)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks for many that no module has
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        # As a statement does it: that goes on where threads wait for one another in a circle.
        __import__(self.__name__)
        return getattr(sys.modules[self.__name__], name)

    def _maker(self, name: str) -> Callable[..., Any]:
        return lambda *given, **named: _Unmade(lambda: self.__getattr__(name)(*given, **named))


class _Unmade:
    """An object that is made when something is asked of it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_made" not in own:
            own.setdefault("_made", self._make())  # two threads may make one; the first is everybody's
        return getattr(own["_made"], name)
