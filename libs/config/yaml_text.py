"""Configuration text, YAML or JSON, to plain values: what was written, and nothing that was executed or multiplied.

Values are built from the parser's events rather than with a YAML loader, since that is the place where four things can
be decided: scalars are those of YAML 1.1, in which configurations have been written ever since (``on`` is true, ``010``
is eight), except that ``1e-5`` is a number and dates and times stay text; tags other than those of JSON values are
refused, a key given twice is an error, and aliases count with the size of what they repeat, so that nine lines cannot
become nine billion values.

Source: docs/reference/experiments.md 1.1; YAML 1.1 types bool and int.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn, Protocol, TypeAlias

import yaml

from libs.config.value_count import has_more_values
from libs.errors import InvalidRequest

MAX_VALUES: Final = 200_000
"""Values in one document, aliases expanded; long text counts as several."""
MAX_DEPTH: Final = 100
TEXT_PER_VALUE: Final = 100

Object: TypeAlias = dict[str, Any]

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "off", "Off", "OFF"), False),
}
_DECIMAL: Final = re.compile(r"[-+]?[0-9][0-9_]*")
_OCTAL: Final = re.compile(r"[-+]?0[0-7_]+")
_PREFIXED: Final = re.compile(r"[-+]?0(o[0-7_]+|x[0-9a-fA-F_]+|b[01_]+)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_UNSTORABLE: Final = re.compile(r"[\x00\ud800-\udfff]")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DOUBLE_BITS: Final = 1024
"""Integers of more bits are beyond any double, and with that beyond JSON as most programs read it."""
_JSON_TAGS: Final = {f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "int", "float", "bool", "null")}
_TEXT_TAGS: Final = {"!", "tag:yaml.org,2002:str"}


class _Mark(Protocol):
    """A place in the text, counted from zero; the two parsers of PyYAML have a class each."""

    line: int
    column: int


class InvalidText(InvalidRequest):
    """Text that is no YAML, or YAML that stands for no plain value. One line, with line and column where known."""


def parse_text(text: str) -> Any:
    """The value of the only document in ``text``: dict, list, str, int, float, bool or None; keys are strings.

    Empty text is None. Raises InvalidText.
    """
    value = _parse(text)
    if "\\" in text:  # the parsers accept NUL and lone surrogates from escapes only
        _check_text(value, ())
    return value


def _parse(text: str) -> Any:
    # JSON with too many values is left to the YAML parser, which stops at the first one that is too many.
    if text.lstrip()[:1] in ("{", "[") and not has_more_values(text.encode(errors="replace"), MAX_VALUES):
        try:
            return _parse_json(text)
        except (ValueError, RecursionError):
            pass  # flow-style YAML begins like JSON, and the YAML parser says better what is wrong with either
    try:
        return _Builder(yaml.parse(text, Loader=_LOADER)).document()
    except yaml.MarkedYAMLError as error:
        _fail(error.problem or "not valid YAML", error.problem_mark or error.context_mark)
    except yaml.YAMLError as error:
        raise InvalidText(f"invalid YAML: {' '.join(str(error).split())}") from error


def _parse_json(text: str) -> Any:
    """JSON is read by the JSON parser, as YAML differs on tabs and on escaped surrogate pairs."""
    value = json.loads(
        text,
        object_pairs_hook=_unique_pairs,
        parse_constant=_refuse_constant,
        parse_float=_finite,
        parse_int=_integer,
    )
    level, depth = [value], 0
    while level:
        level, depth = [child for parent in level for child in _children(parent)], depth + 1
        if depth > MAX_DEPTH + 1:
            raise ValueError("nested too deep")
    return value


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _unique_pairs(pairs: list[tuple[str, Any]]) -> Object:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("duplicate key")
    return dict(pairs)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _integer(text: str, base: int = 10) -> int:
    value = int(text, base)
    if value.bit_length() > _DOUBLE_BITS:
        raise ValueError(text)
    return value


def _check_text(value: Any, path: tuple[str, ...]) -> None:
    """Refuse text, keys included, that neither PostgreSQL nor UTF-8 can hold; it would fail wherever it is stored."""
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            where = ".".join(path) or "the document"
            raise InvalidText(f"invalid YAML: {where}: text must have no NUL characters and no lone surrogates")
    elif isinstance(value, dict):
        for key, child in value.items():
            _check_text(key, path)
            _check_text(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            _check_text(child, (*path, str(index)))


class _Builder:
    """Builds one document from YAML events, keeping count of what it builds."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._anchors: dict[str, tuple[Any, int]] = {}  # anchor -> value, number of values in it
        self._values = 0

    def document(self) -> Any:
        value: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    _fail("expected a single document", event.start_mark)
            elif isinstance(event, yaml.NodeEvent):
                value = self._node(event, 0)
        return value

    def _node(self, event: yaml.Event, depth: int) -> Any:
        if depth > MAX_DEPTH:
            _fail(f"nested more than {MAX_DEPTH} levels deep", event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._values
        self._count(1 + len(getattr(event, "value", "")) // TEXT_PER_VALUE, event)
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            _check_tag(event)
            value = [self._node(child, depth + 1) for child in self._children(yaml.SequenceEndEvent)]
        else:
            _check_tag(event)
            value = self._mapping(depth)
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = (value, self._values - before)
        return value

    def _alias(self, event: yaml.AliasEvent) -> Any:
        known = self._anchors.get(str(event.anchor))
        if known is None:
            _fail(f'found undefined alias "{event.anchor}"', event.start_mark)
        value, size = known
        self._count(size, event)
        return copy.deepcopy(value)

    def _mapping(self, depth: int) -> Object:
        given: Object = {}
        inherited: Object = {}
        for event in self._children(yaml.MappingEndEvent):
            key = self._key(event)
            value_event = next(self._events)
            value = self._node(value_event, depth + 1)
            if key == "<<" and _is_plain(event):
                inherited = {**_merged_sources(value, value_event), **inherited}
            elif key in given:
                _fail(f'key "{key}" is given twice', event.start_mark)
            else:
                given[key] = value
        return {**inherited, **given}

    def _key(self, event: yaml.Event) -> str:
        """Keys are text whatever they look like: JSON, and so everything that is stored, knows no others."""
        if isinstance(event, yaml.ScalarEvent):
            return str(event.value)
        if isinstance(event, yaml.AliasEvent) and not isinstance(key := self._alias(event), dict | list):
            return str(key)
        _fail("a key must be plain text", event.start_mark)

    def _children(self, end: type[yaml.Event]) -> Iterator[yaml.Event]:
        for event in self._events:
            if isinstance(event, end):
                return
            yield event

    def _count(self, values: int, event: yaml.Event) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            _fail(f"more than {MAX_VALUES} values, aliases included", event.start_mark)


def _merged_sources(value: Any, event: yaml.Event) -> Object:
    """What a ``<<`` key brings in: one mapping, or a list of them of which the earlier win."""
    sources = value if isinstance(value, list) else [value]
    merged: Object = {}
    for source in sources:
        if not isinstance(source, dict):
            _fail('"<<" expects a mapping or a list of mappings', event.start_mark)
        merged = {**source, **merged}
    return merged


def _scalar(event: yaml.ScalarEvent) -> Any:
    text = str(event.value)
    if event.tag in _TEXT_TAGS or (event.tag is None and not _is_plain(event)):
        return text
    _check_tag(event)
    value = _plain(text, event)
    if event.tag is not None and not _has_tag(value, event.tag):
        _fail(f'"{text}" is not of type {event.tag.rsplit(":", 1)[-1]}', event.start_mark)
    return float(value) if event.tag == "tag:yaml.org,2002:float" else value


def _is_plain(event: yaml.Event) -> bool:
    """Whether this is a scalar without quotes or tag, whose text decides what it is."""
    return isinstance(event, yaml.ScalarEvent) and event.implicit[0]


def _plain(text: str, event: yaml.ScalarEvent) -> Any:
    """A scalar without quotes: null, flag, number (with digit separators) or text."""
    if text in _WORDS:
        return _WORDS[text]
    try:
        if _OCTAL.fullmatch(text):
            return _integer(text.replace("_", ""), 8)
        if _DECIMAL.fullmatch(text):
            return _integer(text.replace("_", ""))
        if _PREFIXED.fullmatch(text):
            return _integer(text.replace("_", ""), 0)
        if _FLOAT.fullmatch(text):
            return _finite(text.replace("_", ""))
    except ValueError:
        _fail("number is too large", event.start_mark)
    if _NOT_FINITE.fullmatch(text):
        _fail(f"{text} is not a finite number", event.start_mark)
    return text


def _has_tag(value: Any, tag: str) -> bool:
    kinds = {"int": int, "float": int | float, "bool": bool, "null": type(None)}
    kind = kinds[tag.rsplit(":", 1)[-1]]
    return isinstance(value, kind) and (isinstance(value, bool) == (kind is bool))


def _check_tag(event: Any) -> None:
    if event.tag is not None and event.tag not in _JSON_TAGS:
        _fail(f"tag {event.tag} is not allowed", event.start_mark)


def _fail(problem: str, mark: _Mark | None) -> NoReturn:
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    raise InvalidText(f"invalid YAML: {where}{' '.join(problem.split())}")
