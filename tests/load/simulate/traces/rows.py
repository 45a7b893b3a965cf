"""Rows of a CSV file, compressed or not, with the number of the line in every complaint about one."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO, cast


class Row:
    """One row of a file with a header."""

    def __init__(self, values: Mapping[str, str], where: str) -> None:
        self._values = values
        self._where = where

    def text(self, column: str) -> str:
        return self._values[column]

    def number(self, column: str) -> float:
        """Raises ValueError for what is not a number of zero or more."""
        text = self._values[column]
        try:
            value = float(text)
        except (TypeError, ValueError):
            value = -1.0
        if not 0 <= value < float("inf"):
            raise ValueError(f"{self._where}: {column} has to be a number of zero or more, not {text!r}")
        return value


def header(path: Path) -> frozenset[str]:
    with _opened(path) as lines:
        return frozenset(next(csv.reader(lines), ()))


def rows(path: Path) -> Iterator[Row]:
    with _opened(path) as lines:
        reader = csv.DictReader(lines)
        for values in reader:
            yield Row(values, f"{path.name}, line {reader.line_num}")


def _opened(path: Path) -> TextIO:
    return cast(TextIO, gzip.open(path, "rt", newline="")) if path.suffix == ".gz" else path.open(newline="")
