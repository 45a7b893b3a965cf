"""Every line once and in order, whatever it looks like, whoever reads it and when."""

from __future__ import annotations

import pytest

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.programs import create_arguments, created

LINES = 3000
"""As many of each stream as lines.py prints."""


@pytest.fixture(scope="module")
def followed(det: Client, look: Looking) -> tuple[int, list[str]]:
    """A trial of lines.py, and what ``det experiment create -f`` showed of it."""
    output = det(*create_arguments(det, "lines.py", "--follow-first-trial"))
    experiment = created(output)
    look.wait(experiment)
    lines = [line for line in output.split("\n") if line.startswith("[20")]
    return look.trial(experiment)["id"], lines


def test_every_line_of_each_stream_once_and_in_order(look: Looking, followed: tuple[int, list[str]]) -> None:
    trial, _ = followed
    out = look.printed(trial, stdtypes="stdout")
    # The harness says something first.
    assert out[out.index("out 0") :] == [
        *(f"out {number}" for number in range(LINES)),
        "from rank three",
        "Logs\x00Can\x00Have\x00Null\x00Bytes",
        "carriage",
        "return",
        "ÄÖÜ 漢字",
        "out without newline",
    ]
    errors = [line for line in look.printed(trial, stdtypes="stderr") if line.startswith("err ")]
    assert errors == [*(f"err {number}" for number in range(LINES)), "err without newline"]


def test_prefixes_become_rank_and_level(look: Looking, followed: tuple[int, list[str]]) -> None:
    trial, _ = followed
    lines = look.logs(trial, rankIds=3)
    assert [(line["log"], line["rankId"], line["level"]) for line in lines] == [
        ("from rank three\n", 3, "LOG_LEVEL_WARNING")
    ]
    assert "[rank=3] || WARNING: from rank three\n" in lines[0]["message"]
    assert look.logs(trial, rankIds=-2) == []
    assert len(look.logs(trial, rankIds=-1)) == len(look.logs(trial)) - 1


def test_following_shows_what_a_later_look_shows(det: Client, look: Looking, followed: tuple[int, list[str]]) -> None:
    trial, shown = followed
    later = [line["message"].removesuffix("\n") for line in look.logs(trial)]
    assert shown == later
    assert len(later) > 2 * LINES
    assert any(line.endswith("resources exited successfully with a zero exit code") for line in later)
    for option, expected in (("--head", later[:10]), ("--tail", later[-10:]), ("--tail", later[-2500:])):
        output = det("trial", "logs", option, str(len(expected)), str(trial))
        assert [line for line in output.split("\n") if line.startswith("[20")] == expected


def test_search_text_finds_lines(look: Looking, followed: tuple[int, list[str]]) -> None:
    trial, _ = followed
    assert [line["log"] for line in look.logs(trial, searchText="漢字")] == ["ÄÖÜ 漢字\n"]
    assert look.logs(trial, searchText="out_1") == []
