"""Typed settings of a service: defaults in the struct, then a YAML file, then the environment; the last one wins.

One rule for the environment: ``RESOLUTE_`` and the path to the field in capitals, levels joined by two underscores, so
that ``bus.request_timeout_s`` is ``RESOLUTE_BUS__REQUEST_TIMEOUT_S``. Text is taken as it stands; any other type is
written as in YAML (``true``, ``2.5``, ``[a, b]``), and a mapping is given as a whole.

With ``_FILE`` behind its name a variable says in which file its value is, as secrets are mounted:
``RESOLUTE_BUS__TOKEN_FILE``. It is read once, and wins over the variable without. Fields that end in ``_file`` are
settings of their own.

All services can share one environment, so sections that a service does not have are passed over; inside a section, and
in the file, everything unknown is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml
from msgspec import Struct, ValidationError
from msgspec.inspect import StrType, StructType, Type, UnionType, type_info

from libs.errors import ResoluteError
from libs.secret_files import read_secret

PREFIX: Final = "RESOLUTE_"
IN_FILE: Final = "_file"

_T = TypeVar("_T", bound=Struct)


class InvalidSettings(ResoluteError):
    """A setting that is unknown, missing or of the wrong kind. The message names it, and what to do."""


def load(
    settings_type: type[_T], path: Path | None, environ: Mapping[str, str], *, others_sections: bool = False
) -> _T:
    """Settings of ``settings_type``, a struct of plain fields and nested structs.

    path             YAML file with the same nesting; None for none
    environ          usually ``os.environ``
    others_sections  whether the file may have sections that only others know
    Raises InvalidSettings.
    """
    values = _read_file(path)
    root = type_info(settings_type)
    assert isinstance(root, StructType)
    if others_sections:
        own = {field.encode_name for field in root.fields}
        values = {name: value for name, value in values.items() if name in own}
    for name in sorted(environ):
        if name.startswith(PREFIX):
            _put(values, root, name, environ[name])
    try:
        return msgspec.convert(values, settings_type)
    except ValidationError as error:
        raise InvalidSettings(_explain(str(error), root, path)) from error


def variable(path: Iterable[str]) -> str:
    """Environment variable of the setting at ``path``."""
    return PREFIX + "__".join(path).upper()


def _read_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise InvalidSettings(f"settings file {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise InvalidSettings(f"settings file {path} is not YAML: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InvalidSettings(
            f"settings file {path} must be a mapping of sections, such as 'bus:', not a {type(content).__name__}"
        )
    return content


def _put(values: dict[str, Any], root: StructType, name: str, text: str) -> None:
    """Store the value of one environment variable where its name says."""
    parts = name.removeprefix(PREFIX).lower().split("__")
    at: Type = root
    into = values
    for depth, part in enumerate(parts):
        section = _struct_in(at)
        if section is None:
            above = ".".join(parts[:depth])
            raise InvalidSettings(
                f"{name} names nothing: {above} has no parts; set {variable(parts[:depth])} as a whole"
            )
        known = {field.encode_name: field.type for field in section.fields}
        if depth == len(parts) - 1 and part not in known and part.removesuffix(IN_FILE) in known:
            _put(values, root, name.removesuffix(IN_FILE.upper()), _read_value(name, Path(text)))
            return
        if part not in known:
            if depth == 0:
                return
            raise InvalidSettings(f"{name} sets the unknown {'.'.join(parts[: depth + 1])}; {_suggest(part, known)}")
        at = known[part]
        if depth < len(parts) - 1:
            below = into.setdefault(part, {})
            if not isinstance(below, dict):
                raise InvalidSettings(f"setting {'.'.join(parts[: depth + 1])} must be a section with fields below it")
            into = below
    into[parts[-1]] = text if _takes_text(at) else _parse(name, text)


def _read_value(name: str, path: Path) -> str:
    """What is in the file that a variable names. Raises InvalidSettings."""
    try:
        return read_secret(path)
    except OSError as error:
        raise InvalidSettings(f"{name}: {path} cannot be read: {error.strerror}") from error


def _parse(name: str, text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidSettings(f"{name} is not YAML: {error}") from error


def _struct_in(of: Type) -> StructType | None:
    """The struct that a field holds, directly or as an alternative to None."""
    if isinstance(of, UnionType):
        return next((kind for kind in of.types if isinstance(kind, StructType)), None)
    return of if isinstance(of, StructType) else None


def _takes_text(of: Type) -> bool:
    if isinstance(of, UnionType):
        return any(_takes_text(kind) for kind in of.types)
    # Literals of text come out of YAML as text anyway, apart from on, off, yes and no.
    return isinstance(of, StrType | msgspec.inspect.LiteralType) and not _has_numbers(of)


def _has_numbers(of: Type) -> bool:
    return isinstance(of, msgspec.inspect.LiteralType) and not all(isinstance(value, str) for value in of.values)


def _explain(message: str, root: StructType, path: Path | None) -> str:
    """msgspec's message in terms of settings, with the remedy."""
    problem, _, where = message.partition(" - at ")
    parts = re.findall(r"\w+", where.replace("[...]", ""))
    place = f"{path}" if path is not None else "the settings file"
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", problem)
    if unknown:
        section = _section(root, parts)
        known = [field.encode_name for field in section.fields] if section else []
        name = ".".join([*parts, unknown[1]])
        return f"unknown setting {name} in {place}; {_suggest(unknown[1], known)}"
    missing = re.fullmatch(r"Object missing required field `(.*)`", problem)
    if missing:
        full = [*parts, missing[1]]
        return f"setting {'.'.join(full)} is required: set {variable(full)}, or add it to {place}"
    return f"setting {'.'.join(parts)}: {problem[:1].lower()}{problem[1:]}; correct {variable(parts)} or {place}"


def _section(root: StructType, parts: Iterable[str]) -> StructType | None:
    section: StructType | None = root
    for part in parts:
        if section is None:
            return None
        section = next((_struct_in(field.type) for field in section.fields if field.encode_name == part), None)
    return section


def _suggest(name: str, known: Iterable[str]) -> str:
    import difflib  # noqa: PLC0415  for mistakes alone

    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known there: {', '.join(known)}"
