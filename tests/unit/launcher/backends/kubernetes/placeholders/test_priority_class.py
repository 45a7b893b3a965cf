"""The class of placeholders: the one that is configured, or one of its own where the cluster lets it be made."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from services.launcher.backends.kubernetes.client.api import Refused
from services.launcher.backends.kubernetes.creation.priority_classes import PriorityClasses
from services.launcher.backends.kubernetes.manifests.priority import PLACEHOLDER, placeholder_class


class Api:
    def __init__(self, *, may_create: bool = True) -> None:
        self.created: list[dict[str, Any]] = []
        self._may_create = may_create

    async def get(self, _path: str, kind: Any) -> Any:
        return kind(items=[])

    async def create(self, _path: str, body: dict[str, Any], _kind: object) -> None:
        if not self._may_create:
            raise Refused(403, "Forbidden", "no")
        self.created.append(body)


async def classes(api: Api, mode: Literal["auto", "assume", "off"] = "auto") -> PriorityClasses:
    found = PriorityClasses(api, mode=mode)  # type: ignore[arg-type]
    await found.look()
    return found


async def test_it_is_made_once_with_a_value_below_everything_else() -> None:
    api = Api()
    found = await classes(api)
    assert [await found.of_placeholders("") for _ in range(2)] == [PLACEHOLDER] * 2
    assert api.created == [placeholder_class()]
    assert placeholder_class()["value"] == -10
    assert placeholder_class()["preemptionPolicy"] == "Never"


async def test_without_the_right_to_make_it_there_is_none() -> None:
    found = await classes(Api(may_create=False))
    assert [await found.of_placeholders("") for _ in range(2)] == [None, None]


@pytest.mark.parametrize(("mode", "said"), [("off", None), ("assume", PLACEHOLDER)])
async def test_settings_of_the_launcher_hold_for_it_too(mode: Literal["assume", "off"], said: str | None) -> None:
    assert await (await classes(Api(), mode)).of_placeholders("") == said


async def test_a_configured_one_is_taken_as_it_is() -> None:
    api = Api()
    assert await (await classes(api)).of_placeholders("spare") == "spare"
    assert api.created == []
