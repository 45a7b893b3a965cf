"""Has a call recorded in the audit log: in each of its transactions or, when it had none, in one of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from libs.db.audit.records import AuditedRequest, recorded, write_record
from services.api.access.audit_table import AuditRule
from services.api.access.principal import Principal
from services.api.http.call import Call
from services.api.http.routing import HandlerResult

LONGEST: Final = 256
"""Characters of a value, and entries of a list, that are recorded."""


async def with_audit(
    rule: AuditRule, call: Call[Any, Any, Any], handle: Callable[[], Awaitable[HandlerResult]]
) -> HandlerResult:
    """The result of ``handle``. What raised has changed nothing, or is in the record of what it had committed."""
    with recorded(request_of(rule, call)) as recording:
        result = await handle()
        if not recording.is_written:  # what it changed is not in the database
            async with call.app.db.transaction() as connection:
                await write_record(connection, recording)
        return result


def request_of(rule: AuditRule, call: Call[Any, Any, Any]) -> AuditedRequest:
    who: Principal | None = call.principal_if_known
    return AuditedRequest(
        user_id=None if who is None else who.user_id,
        username=str(getattr(call.body, "username", ""))[:LONGEST] if who is None else who.username,
        allocation_id=None if who is None or who.task is None else who.task.allocation_id,
        address=call.address,
        request_id=call.request_id,
        action=rule.action,
        target={name: text.replace("\0", "")[:LONGEST] for name, text in call.path_texts.items()},
        details=details_of(call.body, rule.values),
    )


def details_of(body: object, values: tuple[str, ...]) -> dict[str, Any]:
    """The recorded fields of a body by name, and in ``others`` the names of the others that were given."""
    if not isinstance(body, Struct):
        return {}
    asked = {name: _at(body, name) for name in values}
    details = {name: _short(value) for name, value in asked.items() if value is not UNSET and value not in (None, "")}
    shown = {name.partition(".")[0] for name in values}
    others = [field.name for field in msgspec.structs.fields(body) if field.name not in shown]
    given = [name for name in others if getattr(body, name)]
    return {**details, "others": given} if given else details


def _at(body: Any, name: str) -> Any:
    for part in name.split("."):
        body = getattr(body, part, UNSET)
    return body


def _short(value: object) -> Any:
    plain = msgspec.to_builtins(value)
    return plain[:LONGEST] if isinstance(plain, str | list) else plain
