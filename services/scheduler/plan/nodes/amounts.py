"""Amounts of resources: pairs of a name and a whole number, by name, so that structs that hold them can be hashed.

``cpu`` is in thousandths of a core, memory and storage in bytes, ``pods`` and extended resources in pieces, as
``libs.podspec.quantities.units`` has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

Amounts: TypeAlias = tuple[tuple[str, int], ...]

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
_USUAL: Final = (CPU, MEMORY, STORAGE)
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amounts(values: Mapping[str, int]) -> Amounts:
    """The amounts of a mapping, without those that are nothing."""
    return tuple(sorted((name, amount) for name, amount in values.items() if amount))


def added(*summands: Amounts) -> Amounts:
    """The sum, resource by resource."""
    total: dict[str, int] = {}
    for each in summands:
        for name, amount in each:
            total[name] = total.get(name, 0) + amount
    return amounts(total)


def amount_of(held: Amounts, resource: str) -> int:
    """The amount of one resource; 0 where there is none."""
    return next((amount for name, amount in held if name == resource), 0)


def in_usual_order(resource: str) -> tuple[int, str]:
    """Key that sorts resources as people name them: cores, memory, storage, and then the others by name."""
    return (_USUAL.index(resource) if resource in _USUAL else len(_USUAL), resource)


def in_words(resource: str, amount: int) -> str:
    """An amount with its unit: ``3.5 cores``, ``900GiB of memory``, ``2 of vendor.example/nic``."""
    if resource == CPU:
        return f"{amount / 1000:g} {'core' if amount == 1000 else 'cores'}"
    if resource in (MEMORY, STORAGE) or resource.startswith("hugepages-"):
        return f"{_bytes_in_words(amount)} of {resource.replace('-', ' ') if resource == STORAGE else resource}"
    return f"{amount} of {resource}"


def _bytes_in_words(amount: int) -> str:
    size, unit = float(amount), 0
    while abs(size) >= 1024 and unit < len(_BINARY) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.4g}{_BINARY[unit]}{'B' if unit else ' bytes'}"
