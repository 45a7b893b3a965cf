"""What is kept of the users and groups of RFC 7643: what is published as their schemas, and what bodies are read with.

Values are read as providers send them (``values.py``), and those who read one say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import scim2_models as scim
from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel

from libs.errors import InvalidRequest
from services.api.scim import values
from services.api.scim.errors import InvalidPath

_POLICY = scim.ScimPolicy(
    unknown=scim.ScimPolicy.Unknown.ignore, unmatched_path_filter=scim.ScimPolicy.UnmatchedPathFilter.create
)
"""As Entra ID wants it."""


def _text(value: Any, info: ValidationInfo) -> str | None:
    return values.text(value, to_camel(info.field_name or "")) or None


def _flag(value: Any, info: ValidationInfo) -> bool | None:
    return None if value is None else values.flag(value, to_camel(info.field_name or ""))


def _trimmed(value: Any, info: ValidationInfo) -> str | None:
    return (_text(value, info) or "").strip() or None


Text = Annotated[str | None, BeforeValidator(_text)]
Trimmed = Annotated[str | None, BeforeValidator(_trimmed)]
Flag = Annotated[bool | None, BeforeValidator(_flag)]


class Name(scim.ComplexAttribute):
    formatted: Text = None
    family_name: Text = None
    given_name: Text = None
    middle_name: Text = None
    honorific_prefix: Text = None
    honorific_suffix: Text = None


class Email(scim.ComplexAttribute):
    value: Text = None
    display: Text = None
    type: Text = None
    primary: Flag = None

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, given: Any) -> Any:
        return {"value": given} if isinstance(given, str) else given


class ScimUser(scim.Resource[Any]):
    __schema__ = scim.URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[Trimmed, scim.Required.true, scim.Uniqueness.server] = None
    name: Name | None = None
    display_name: Trimmed = None
    active: Flag = None
    emails: Annotated[list[Email] | None, BeforeValidator(values.addresses)] = None

    _external_id = field_validator("external_id", mode="before")(_text)


class ScimMember(scim.ComplexAttribute):
    value: Annotated[str | None, scim.Mutability.immutable] = None
    display: Annotated[str | None, scim.Mutability.read_only] = None
    ref: Annotated[scim.Reference[scim.User[Any]] | None, scim.Mutability.immutable] = Field(None, alias="$ref")


class ScimGroup(scim.Resource[Any]):
    __schema__ = scim.URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, scim.Required.true, scim.Uniqueness.server] = None
    members: list[ScimMember] | None = None


@contextmanager
def tolerant() -> Iterator[None]:
    """Bodies are read as providers mean them. Raises InvalidRequest, InvalidPath for what the library refuses."""
    try:
        with _POLICY:
            yield
    except (scim.SCIMException, ValidationError) as error:
        reason = error.__cause__ if isinstance(error.__cause__, ValidationError) else error
        told = (
            scim.Error.from_validation_errors(reason)[0] if isinstance(reason, ValidationError) else reason.to_error()
        )
        kind = InvalidPath if told.scim_type == "invalidPath" else InvalidRequest
        raise kind(told.detail or "the request is not understood") from error
