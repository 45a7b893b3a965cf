"""Reads the fields of settings structs and the docstrings below them, so that the code is their only description."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import NODEFAULT, Struct
from msgspec import inspect as types

_KINDS: dict[type[types.Type], str] = {
    types.AnyType: "anything",
    types.BoolType: "true or false",
    types.DictType: "mapping",
    types.StrType: "text",
}


@dataclass(frozen=True, kw_only=True)
class SettingField:
    """One key that can be written."""

    path: tuple[str, ...]
    """Keys from the root; that of a list of mappings ends in ``[]``."""
    kind: str
    default: str
    """As YAML; empty where it is required."""
    description: str
    """One paragraph of plain text; empty where the name says all."""


def fields_of(
    struct: type[Struct], *, above: tuple[str, ...] = (), defaults: Struct | None = None
) -> Iterator[SettingField]:
    """Leaves of ``struct`` in the order of the code, with those of structs inside it in the place of their key.

    above     keys that lead to it
    defaults  what applies where it is left out altogether; None when it is a list's or has no default
    """
    info = types.type_info(struct)
    assert isinstance(info, types.StructType)
    descriptions = field_docstrings(struct)
    for one in info.fields:
        bare = _without_none(one.type)
        inner, is_list = _inner_struct(bare)
        path = (*above, f"{one.encode_name}[]" if is_list else one.encode_name)
        default = getattr(defaults, one.name) if defaults is not None else _default(one)
        if inner is not None:
            yield from fields_of(inner, above=path, defaults=default if isinstance(default, inner) else None)
            continue
        yield SettingField(
            path=path, kind=kind_of(bare), default=_as_yaml(default), description=descriptions.get(one.name, "")
        )


def kind_of(kind: types.Type) -> str:
    """What may be written there, in words."""
    match kind:
        case types.LiteralType():
            return ", ".join(f"`{value}`" if value else "empty" for value in kind.values)
        case types.IntType() | types.FloatType():
            return " ".join(["whole number" if isinstance(kind, types.IntType) else "number", *_bounds(kind)])
        case types.ListType() | types.VarTupleType() | types.SetType():
            inner = kind_of(kind.item_type)
            return "list" if inner == "anything" else f"list of {inner}"
        case types.UnionType():
            return " or ".join(kind_of(one) for one in kind.types)
    return _KINDS[type(kind)]


@functools.cache
def field_docstrings(struct: type[Struct]) -> dict[str, str]:
    """Names of fields -> the string below them, inherited ones included."""
    found: dict[str, str] = {}
    for part in reversed(struct.__mro__):
        if part is Struct or not issubclass(part, Struct):
            continue
        definition = _definition(Path(inspect.getfile(part)), part.__name__)
        for before, after in zip(definition.body, definition.body[1:], strict=False):
            match before, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = " ".join(text.split())
    return found


def _definition(module: Path, name: str) -> ast.ClassDef:
    tree = ast.parse(module.read_text())
    return next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)


def _without_none(kind: types.Type) -> types.Type:
    if not isinstance(kind, types.UnionType):
        return kind
    rest = tuple(one for one in kind.types if not isinstance(one, types.NoneType))
    return rest[0] if len(rest) == 1 else types.UnionType(rest)


def _inner_struct(kind: types.Type) -> tuple[type[Struct] | None, bool]:
    """The struct at this place, and whether there is a list of it."""
    match kind:
        case types.StructType():
            return kind.cls, False
        case types.ListType(item_type=types.StructType(cls=inner)):
            return inner, True
        case types.VarTupleType(item_type=types.StructType(cls=inner)):
            return inner, True
    return None, False


def _bounds(kind: types.IntType | types.FloatType) -> Iterator[str]:
    for bound, words in ((kind.ge, "from"), (kind.gt, "above"), (kind.le, "to"), (kind.lt, "below")):
        if bound is not None:
            yield f"{words} {bound}"


def _default(one: types.Field) -> Any:
    if one.default is not NODEFAULT:
        return one.default
    return one.default_factory() if one.default_factory is not NODEFAULT else NODEFAULT


def _as_yaml(value: Any) -> str:
    if value is NODEFAULT:
        return ""
    text: str = yaml.safe_dump(msgspec.to_builtins(value), default_flow_style=True, width=1 << 20)
    return text.removesuffix("\n").removesuffix("\n...")
