"""Decodes a body into a typed value: a fast path for what clients nearly always send, a slow path for the rest.

The fast path lets msgspec decode straight into the struct. It is taken only when the result is certain to be the same:
the body has no escaped characters (NUL, names spelled with escapes), no snake_case spelling of a known field, no run of
digits long enough to be out of range, and is neither large nor deep. These tests are searches in C and cost a fraction
of the decoding. Whatever the fast path cannot decode gets a second chance on the slow path, through ``protojson``,
whose complaint is the one the client sees.
Source: docs/reference/platform.md 1.2 and 1.3 (malformed JSON, bad enum, bad integer: 400).
"""

from __future__ import annotations

import re
from typing import Any, Final, Generic, TypeVar

import msgspec
import msgspec.inspect as mi

from libs.errors import InvalidRequest
from services.api.http.decoding.protojson import (
    FREE_FORM_INTEGER_DIGITS,
    MAX_DEPTH,
    Normalisers,
    admits_null,
    struct_types,
)

Value = TypeVar("Value")

_FAST_PATH_MAX_BYTES: Final = 256 * 1024
_DIGITS_TO_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")
_FIELD_OF_MESSAGE: Final = re.compile(r"(?s)(.*) - at `(?:key in )?\$(.*)`")


class BodyDecoder(Generic[Value]):
    """Decodes bodies of one route.

    kind       what the body becomes: a Message, or ``str``, ``list[...]``, ``dict[str, Any]``
    allow_nul  whether text may contain NUL characters, which PostgreSQL cannot store
    """

    def __init__(self, kind: type[Value], *, allow_nul: bool = False) -> None:
        self._kind = kind
        info = mi.type_info(kind)
        self._normalise = Normalisers(allow_nul=allow_nul).build(info)
        self._decode = msgspec.json.Decoder(kind).decode
        self._nullable = admits_null(info)
        self._when_empty = b"{}"
        if isinstance(info, (mi.ListType, mi.VarTupleType)):
            self._when_empty = b"[]"
        elif isinstance(info, mi.StrType):
            self._when_empty = b'""'
        inside = list(struct_types(info))
        self._snake_name = re.compile(b"|".join(map(re.escape, _snake_names(inside))) or b"(?!)").search
        self._long_number = b"0" * min(map(_critical_digits, inside))

    def __call__(self, body: bytes) -> Value:
        """The value of a body; an empty one is ``{}`` (or ``[]`` or ``""``).

        Raises InvalidRequest, with the name of the field and what was expected; never anything else.
        """
        if not body or body.isspace():
            body = self._when_empty
        if self._fast_path_is_safe(body):
            try:
                return self._decode(body)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass  # the slow path finds out what it is, and forgives more
        return self._decode_tolerantly(body)

    def _fast_path_is_safe(self, body: bytes) -> bool:
        return (
            len(body) <= _FAST_PATH_MAX_BYTES
            and b"\\" not in body
            and body.count(b"{") + body.count(b"[") <= MAX_DEPTH
            and self._snake_name(body) is None
            and self._long_number not in body.translate(_DIGITS_TO_ZERO)
        )

    def _decode_tolerantly(self, body: bytes) -> Value:
        try:
            tree = msgspec.json.decode(body)
            if tree is None and not self._nullable:
                return self._decode(self._when_empty)
            return convert(self._normalise(tree, ""), self._kind)
        except msgspec.ValidationError as error:  # only numbers that do not fit; the rest comes out of convert()
            raise InvalidRequest(self._named(body, error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"the request body is not JSON: {error}") from None
        except RecursionError:
            raise InvalidRequest(f"the request body is nested deeper than {MAX_DEPTH} levels") from None

    def _named(self, body: bytes, error: msgspec.ValidationError) -> str:
        """The complaint about a number that no double can hold, with its field if it is one that is known."""
        try:
            self._decode(body)
        except msgspec.ValidationError as typed:
            return explain(str(typed))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        return f"the request body is not valid: {str(error).partition(' - at ')[0]}"


def convert(tree: Any, kind: type[Value]) -> Value:
    """A normalised tree to a value of ``kind``; raises InvalidRequest in terms of the field that does not fit."""
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(explain(str(error))) from None


def explain(message: str) -> str:
    """A message of msgspec, field first: ``trialId: expected `int`, got `str```."""
    match = _FIELD_OF_MESSAGE.fullmatch(message)
    text, path = (match[1], match[2].lstrip(".")) if match else (message, "")
    # A sentence of ours inside a longer one: lower the first letter.
    return f"{path or 'body'}: {text[:1].lower()}{text[1:]}"


def _snake_names(kinds: list[mi.Type]) -> tuple[bytes, ...]:
    names = {
        f'"{field.name}"'.encode()
        for kind in kinds
        if isinstance(kind, mi.StructType)
        for field in kind.fields
        if field.name != field.encode_name
    }
    return tuple(sorted(names))


def _critical_digits(kind: mi.Type) -> int:
    """From how many digits on the number of a type needs a closer look than msgspec takes."""
    match kind:
        case mi.IntType(le=None):
            return 10
        case mi.Metadata(extra=extra) if (extra or {}).get("int64"):
            return 19
        case _:
            return FREE_FORM_INTEGER_DIGITS
