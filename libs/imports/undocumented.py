"""Imports libraries without their docstrings, which take a sixteenth of what a service takes and which nothing reads.

``python -OO`` would leave out assertions as well, and the docstrings of this repository, from which the description of
the interface is made. What is compiled without docstrings is kept beside what everybody else imports. Where it cannot
be kept, as in a container whose files are not written, libraries are imported as they are.
Source: https://docs.python.org/3/library/importlib.html#importlib.abc.SourceLoader
"""

from __future__ import annotations

import _ast  # ``ast`` is one of the modules that are compiled here
import os
import sys
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from types import CodeType
from typing import Any, Final

_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_OWN: Final = tuple(os.path.join(_ROOT, package, "") for package in ("deploy", "libs", "services"))
_WITH_DOCSTRINGS: Final = (os.path.join("sqlalchemy", "orm"),)
"""Folders whose modules rely on docstrings of their own; no service imports them unless it is asked to."""
_SUFFIX: Final = ".pyc"
_KIND: Final = ".opt-undocumented"
"""As optimized code is called; PEP 488."""
_DOCUMENTED: Final = (_ast.Module, _ast.ClassDef, _ast.FunctionDef, _ast.AsyncFunctionDef)
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields of statements that hold statements."""


def import_undocumented() -> None:
    """From now on, modules that are not of this repository are imported without their docstrings."""
    if _finder not in sys.path_hooks:
        sys.path_hooks.insert(0, _finder)
        sys.path_importer_cache.clear()


class UndocumentedLoader(SourceFileLoader):
    """Compiles a module without docstrings, and keeps that under a name of its own."""

    def get_data(self, path: str) -> bytes:
        if not path.endswith(_SUFFIX):
            return super().get_data(path)
        try:
            return super().get_data(_kept_at(path))
        except FileNotFoundError:
            if not sys.dont_write_bytecode and os.access(os.path.dirname(path), os.W_OK):
                raise  # it is compiled, and kept
            return super().get_data(path)

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        super().set_data(_kept_at(path), data, _mode=_mode)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree: Any = compile(data, path, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
        _leave_out_docstrings(tree)
        code: CodeType = compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)
        return code


def _leave_out_docstrings(node: Any) -> None:
    """Of a module, class or function, and of those that are defined in it or in a branch of it."""
    if isinstance(node, _DOCUMENTED):
        _leave_out_docstring(node.body)
    for block in _BLOCKS:
        for each in getattr(node, block, ()):
            _leave_out_docstrings(each)


def _leave_out_docstring(body: list[_ast.stmt]) -> None:
    # All strings that it begins with: the second would be the docstring then.
    while body and isinstance(first := body[0], _ast.Expr) and isinstance(first.value, _ast.Constant):
        if not isinstance(first.value.value, str):
            return
        del body[0]
        if not body:
            position = {"lineno": first.lineno, "col_offset": first.col_offset}
            body.append(_ast.Pass(**position, end_lineno=first.end_lineno, end_col_offset=first.end_col_offset))


def _kept_at(path: str) -> str:
    return path.removesuffix(_SUFFIX) + _KIND + _SUFFIX


def _finder(path: str) -> FileFinder:
    """The hook of the import system. Raises ImportError for a folder that is left to the others."""
    if not os.path.isdir(path) or os.path.join(path, "").startswith(_OWN) or path.endswith(_WITH_DOCSTRINGS):
        raise ImportError("not a folder of which docstrings are left out", path=path)
    return FileFinder(
        path,
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (UndocumentedLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )
