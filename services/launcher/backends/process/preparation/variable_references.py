"""Resolves references between the variables of users, as Kubernetes does (pure).

``$(NAME)`` stands for the value of a variable that was set before, and stays as it is when there is none; ``$$`` is a
``$``. Source: Kubernetes, "Define Dependent Environment Variables".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$\$|\$\(([^)]*)\)")


def resolve_references(variables: Mapping[str, str], *, of_user: Mapping[str, str]) -> dict[str, str]:
    """``variables`` in their order, with the references in those that are still as the user has set them resolved.

    What the system sets is no text of the user, and may hold a ``$(`` that means something else.
    """
    resolved: dict[str, str] = {}
    for name, value in variables.items():
        resolved[name] = _resolve(value, resolved) if of_user.get(name) == value else value
    return resolved


def _resolve(value: str, before: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda found: "$" if found[1] is None else before.get(found[1], found[0]), value)
