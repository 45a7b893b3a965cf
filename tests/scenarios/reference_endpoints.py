"""Every endpoint of the reference interface, as docs/reference/rest-endpoints.csv lists them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).parents[2] / "docs/reference/rest-endpoints.csv"


@dataclass(frozen=True, slots=True)
class Endpoint:
    method: str
    path: str
    rpc: str


def reference_endpoints() -> list[Endpoint]:
    """In the order of the file."""
    with _FILE.open(newline="", encoding="utf-8") as file:
        return [Endpoint(row["method"], row["path"], row["rpc"]) for row in csv.DictReader(file)]
