"""Log policies: what to watch for in the logs of a trial, and what to do about it.

Source: docs/reference/experiments.md 1.3 (log_policies); docs/reference/logs.md 7.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import re2

from libs.shapes.shape import Object, by_type, checked, converted, list_of, one_of, record, text

_BAD_ACTION: Final = 'must be one of "cancel_retries" or "exclude_node"'
_ACTION: Final = one_of("cancel_retries", "exclude_node", message=_BAD_ACTION)

QUIETLY: Final = re2.Options()
"""How patterns are compiled: RE2 would also write to stderr what is wrong with them."""
QUIETLY.log_errors = False

BUILT_IN: Final[tuple[Mapping[str, str], ...]] = (
    {"name": "CUDA OOM", "pattern": ".*CUDA out of memory.*"},
    {"name": "ECC Error", "pattern": ".*uncorrectable ECC error encountered.*"},
)
"""Every experiment has these, unless it names them itself; naming one without a pattern turns it off."""


def _named_or_legacy(policy: Object) -> str | None:
    if "name" in policy or ("pattern" in policy and "action" in policy):
        return None
    return '"name" must be set, and "pattern" is also required unless you intend to disable an existing policy'


def _is_regular_expression(pattern: str) -> str | None:
    try:
        re2.compile(pattern, QUIETLY)
    except re2.error as error:
        words = error.args[0] if error.args else ""
        return f"invalid regular expression: {words.decode() if isinstance(words, bytes) else words}"
    return None


def _names_differ(policies: list[Object]) -> str | None:
    names = Counter(policy["name"] for policy in policies if "name" in policy)
    repeated = sorted(name for name, times in names.items() if times > 1)
    listed = ", ".join(f'"{name}"' for name in repeated)
    return f"log_policies have duplicated names {listed}" if repeated else None


log_policy: Final = checked(
    record(
        {
            "name": text,
            "pattern": checked(text, _is_regular_expression),
            "action": by_type(
                string=_ACTION,
                object=converted(record({"type": _ACTION}, required=("type",)), lambda action: action["type"]),
            ),
        }
    ),
    _named_or_legacy,
)
log_policies: Final = checked(list_of(log_policy), _names_differ)


def merge_log_policies(high: Sequence[Object], low: Sequence[Mapping[str, Any]]) -> list[Object]:
    """All of ``high``, then what ``low`` adds: new names, and unnamed policies with a new action and pattern."""
    known = {_identity(policy) for policy in high}
    return [*high, *(dict(policy) for policy in low if _identity(policy) not in known)]


def _identity(policy: Mapping[str, Any]) -> tuple[Any, ...]:
    if policy.get("name") is not None:
        return ("named", policy["name"])
    return ("unnamed", policy.get("action"), policy.get("pattern"))
