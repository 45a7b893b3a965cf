"""Amounts as Kubernetes writes them: ``2``, ``500m``, ``64Gi``, ``1e3``.

The client library has a reader too (``kubernetes.utils.quantity``), but it raises for what is no amount, and what
thinks about capacity imports no client, so that it stays free of input and output.
Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final

_QUANTITY: Final = re.compile(r"([+-]?[0-9.]{1,40}(?:[eE][+-]?[0-9]{1,2})?)(m|u|n|[kMGTPE]|[KMGTPE]i)?")
"""Of what people write: longer numbers take seconds to compute with, and there is no such node."""
_MOST: Final = 2**63 - 1
"""As Kubernetes has it: larger amounts count as this one."""
_FACTOR: Final[Mapping[str | None, Decimal]] = {
    None: Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


def quantity(value: str | int | float) -> Decimal:
    """The amount; 0 for what is none, for other people's objects may hold anything that their clusters accept."""
    found = _QUANTITY.fullmatch(str(value).strip())
    if found is None or found[1].count(".") > 1 or not any(char.isdigit() for char in found[1]):
        return Decimal(0)
    return Decimal(found[1]) * _FACTOR[found[2]]


def amount_in(values: Mapping[str, str | int | float] | None, resource: str) -> Decimal:
    """The amount of one resource; 0 where there is none."""
    return quantity((values or {}).get(resource, 0))


@lru_cache(maxsize=4096, typed=True)  # True is 1 to a dictionary, and no amount
def units(resource: str, value: str | int | float) -> int:
    """The amount as the scheduler of Kubernetes counts it, rounded up: ``cpu`` in thousandths of a core, memory and
    storage in bytes, anything else in pieces; 0 for what is no amount or less than nothing."""
    amount = quantity(value) * (1000 if resource == "cpu" else 1)
    return min(max(0, math.ceil(amount)), _MOST)
