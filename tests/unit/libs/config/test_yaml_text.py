"""Configuration text: what becomes of it, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from libs.config.yaml_text import InvalidText, parse_text

VALUES: list[tuple[str, Any]] = [
    ("1e-5", 1e-5),
    ("1e-05", 1e-5),
    ("[1, -2, +3, 1_000, 0, 0x10, -0x1_0, 0b101]", [1, -2, 3, 1000, 0, 16, -16, 5]),
    ("[010, -017, 0_10, 0o17, 08, 089.5]", [8, -15, 8, 15, 8, 89.5]),
    ("[1.0, .5, 1., 1.5e3]", [1.0, 0.5, 1.0, 1500.0]),
    ("[true, True, FALSE]", [True, True, False]),
    ("[yes, No, ON, off]", [True, False, True, False]),
    ("[y, n, yEs, 'no', \"on\"]", ["y", "n", "yEs", "no", "on"]),
    ("{on: 1, 010: 2}", {"on": 1, "010": 2}),
    ("[~, null, Null, ]", [None, None, None]),
    ("a:", {"a": None}),
    ("2020-01-01", "2020-01-01"),
    ("12:30:45", "12:30:45"),
    ("['1', \"true\", !!str 2, ! 3]", ["1", "true", "2", "3"]),
    ("[!!float 3, !!int '4']", [3.0, 4]),
    ("{1: a, true: b, null: c}", {"1": "a", "true": "b", "null": "c"}),
    ("{? a : b}", {"a": "b"}),
    ("a: &x {y: 1}\nb: *x", {"a": {"y": 1}, "b": {"y": 1}}),
    ("a: &x {y: 1, z: 1}\nb: {<<: *x, y: 2}", {"a": {"y": 1, "z": 1}, "b": {"y": 2, "z": 1}}),
    ("b: {<<: [{a: 1}, {a: 2, c: 3}], d: 4}", {"b": {"a": 1, "c": 3, "d": 4}}),
    ("{'<<': 1}", {"<<": 1}),
    ('{"a": NaN}', {"a": "NaN"}),
    ("", None),
    ("# nothing but a comment", None),
    ("text: |\n  one\n  two\n", {"text": "one\ntwo\n"}),
    ('{\n\t"tabs": "\\ud83d\\ude00\\/"}', {"tabs": "\U0001f600/"}),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text for text, _ in VALUES])
def test_text_becomes_the_value_that_its_writer_meant(text: str, value: Any) -> None:
    parsed = parse_text(text)
    assert parsed == value
    assert json.dumps(parsed) == json.dumps(value)  # also tells 1 from True and from 1.0


REFUSED = [
    ("a: 1\nb: {c: 1,\n", "line 3, column 1"),
    ("a:\n\t- b", "line 2, column 1"),
    ("a: 1\nb: 2\na: 3", 'line 3, column 1: key "a" is given twice'),
    ('{"a": 1, "a": 2}', 'line 1, column 10: key "a" is given twice'),
    ("a: 1\n---\nb: 2", "line 2, column 1: expected a single document"),
    ("a: !!python/object/apply:os.system [ls]", "tag:yaml.org,2002:python/object/apply:os.system is not allowed"),
    ("a: !!binary aGk=", "tag:yaml.org,2002:binary is not allowed"),
    ("a: !!set {b, c}", "tag:yaml.org,2002:set is not allowed"),
    ("a: !custom 1", "tag !custom is not allowed"),
    ("a: !!int x", 'line 1, column 4: "x" is not of type int'),
    ("a: *b", 'found undefined alias "b"'),
    ("a: &a [*a]", 'found undefined alias "a"'),
    ("? [a]\n: b", "a key must be plain text"),
    ("a: .nan", ".nan is not a finite number"),
    ("a: -.inf", "-.inf is not a finite number"),
    ("a: 1e999", "number is too large"),
    ("a: " + "9" * 5000, "number is too large"),
    ("a: 0x" + "f" * 5000, "number is too large"),
    ('{"a": ' + "9" * 400 + "}", "number is too large"),
    ('a: {b: ["x\\0"]}', "a.b.0: text must have no NUL characters"),
    ('{"a": "\\u0000"}', "a: text must have no NUL characters"),
    ('{"a": {"b\\ud800": 1}}', "a: text must have no NUL characters and no lone surrogates"),
    ("a: {<<: 1}", '"<<" expects a mapping'),
    ("a: \x00", "control characters are not allowed"),
    ("[" * 100_000, "nested more than 100 levels deep"),
    ('{"a":' * 150 + "1" + "}" * 150, "nested more than 100 levels deep"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_other_text_is_refused_in_one_line_that_says_where(text: str, message: str) -> None:
    with pytest.raises(InvalidText) as caught:
        parse_text(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_aliases_cost_what_they_stand_for() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(InvalidText, match="more than 200000 values"):
        parse_text("\n".join(lines))


def test_aliases_of_long_text_cost_what_they_stand_for() -> None:
    with pytest.raises(InvalidText, match="more than 200000 values"):
        parse_text(f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]")


def test_what_an_alias_repeats_is_a_value_of_its_own() -> None:
    value = parse_text("a: &x [1]\nb: *x")
    value["a"].append(2)
    assert value["b"] == [1]
