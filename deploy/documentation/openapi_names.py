"""The names that clients generated from the description of the REST interface have in their code.

A generator makes a function of each operation and a type of each component: who renames one breaks programs that use
it. The list is committed, so that this is seen in the change that does it.
"""

from __future__ import annotations

from services.api.http.builtin.openapi import openapi_document
from services.api.routes.table import all_routes

_HEAD = (
    "# Names in the description of the REST interface (/api/v1/openapi.json) that generated clients use in their code:",
    "# operations with what they call, and components. Generated from the code: make docs",
)


def openapi_names() -> str:
    """One name a line, of its kind, by kind and name."""
    document = openapi_document(all_routes())
    operations = [
        f"operation {operation['operationId']} {method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    components = [f"{kind} {name}" for kind, named in document["components"].items() for name in named]
    return "\n".join([*_HEAD, *sorted(operations), *sorted(components), ""])
