"""Bodies of requests from the types that describe them: the least there is, and those with one value put somewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec.inspect as mi

Put: TypeAlias = Callable[[Any], Any]
"""value -> a body which has it in a certain place, and nothing else that it need not have"""


def least(kind: mi.Type) -> Any:
    """A value of a type with what it has to have."""
    match plain(kind):
        case mi.StructType(fields=fields):
            return {field.encode_name: least(field.type) for field in fields if field.required}
        case mi.EnumType(cls=cls):
            return next(iter(cls)).value
        case mi.ListType() | mi.VarTupleType():
            return []
        case mi.DictType():
            return {}
        case mi.BoolType():
            return False
        case mi.IntType() | mi.FloatType():
            return 1
        case mi.DateTimeType():
            return "2030-01-01T00:00:00Z"
        case _:
            return "1"


def places(kind: mi.Type, depth: int = 3) -> Iterator[Put]:
    """One for every field of a type and of what is inside of it."""
    match plain(kind):
        case mi.StructType(fields=fields):
            for field in fields:
                around = least(kind)
                yield lambda value, around=around, name=field.encode_name: {**around, name: value}
                for put in places(field.type, depth - 1) if depth else ():
                    yield lambda value, around=around, name=field.encode_name, put=put: {**around, name: put(value)}
        case mi.ListType(item_type=item) | mi.VarTupleType(item_type=item):
            yield lambda value: [value]
            for put in places(item, depth):
                yield lambda value, put=put: [put(value)]
        case mi.DictType(value_type=item):
            yield lambda value: {"key": value}
            for put in places(item, depth):
                yield lambda value, put=put: {"key": put(value)}


def plain(kind: mi.Type) -> mi.Type:
    """The type behind annotations and optionality."""
    match kind:
        case mi.Metadata(type=inner):
            return plain(inner)
        case mi.UnionType(types=types):
            return next((plain(one) for one in types if not isinstance(one, mi.NoneType)), kind)
        case _:
            return kind
