"""The fields of settings structs, as the documentation shows them."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct

from deploy.documentation.struct_fields import SettingField, fields_of


class Colour(Struct, frozen=True):
    name: Literal["", "blue", "red"] = "red"
    """What it is called,
    in one word."""


class Wall(Struct):
    height_m: Annotated[float, Meta(gt=0)]
    bricks: Annotated[int, Meta(ge=1, le=9)] | None = None
    """None is as many as it takes."""
    paint: Colour = Colour(name="blue")
    owners: list[str] | bool = False


class House(Struct):
    walls: tuple[Wall, ...] = ()


def field(name: str, kind: str, default: str, description: str = "") -> SettingField:
    return SettingField(path=tuple(name.split(".")), kind=kind, default=default, description=description)


@pytest.mark.parametrize(
    ("struct", "expected"),
    [
        (Colour, [field("name", "empty, `blue`, `red`", "red", "What it is called, in one word.")]),
        (
            Wall,
            [
                field("height_m", "number above 0", ""),
                field("bricks", "whole number from 1 to 9", "null", "None is as many as it takes."),
                field("paint.name", "empty, `blue`, `red`", "blue", "What it is called, in one word."),
                field("owners", "list of text or true or false", "false"),
            ],
        ),
    ],
)
def test_a_struct_is_described_by_its_fields_and_the_strings_below_them(
    struct: type[Struct], expected: list[SettingField]
) -> None:
    assert list(fields_of(struct)) == expected


def test_the_keys_of_a_list_of_mappings_say_that_there_can_be_several() -> None:
    assert [one.path for one in fields_of(House)][:2] == [("walls[]", "height_m"), ("walls[]", "bricks")]
