"""Models that are put together when they are used, and those that are not deferred."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import BaseModel, ValidationError

from libs.imports.deferred_models import models_deferred


def test_a_deferred_model_validates_as_any_other() -> None:
    with models_deferred():

        class Deferred(BaseModel):
            number: int

    class Usual(BaseModel):
        number: int

    assert (Deferred.__pydantic_complete__, Usual.__pydantic_complete__) == (False, True)
    with pytest.raises(ValidationError):
        Deferred.model_validate({"number": "none"})
    assert Deferred(number=1).model_dump() == Usual(number=1).model_dump()
    assert Deferred.__pydantic_complete__


def test_fastapi_puts_no_description_of_an_interface_together() -> None:
    code = """
from services.api.http.application import Application
Application((), lifespan=None).framework
import fastapi.openapi.models as models
print(models.OAuth2.__pydantic_complete__, models.Info.__pydantic_complete__, models.APIKey.__pydantic_complete__)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", "False", "False"]
