"""The command line of services."""

from __future__ import annotations

from pathlib import Path

import pytest

from libs.service import settings_file


@pytest.mark.parametrize(
    ("said", "file"),
    [([], None), (["--settings", "a.yaml"], Path("a.yaml")), (["--settings=a.yaml"], Path("a.yaml"))],
)
def test_a_service_is_told_where_its_settings_are(said: list[str], file: Path | None) -> None:
    assert settings_file("api", said) == file


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        (["--help"], 0, "RESOLUTE_... variables override it"),
        (["--settings"], 2, "expected one argument"),
        (["--settings", "--help"], 2, "expected one argument"),
        (["--else"], 2, "unrecognized arguments: --else"),
        (["a.yaml"], 2, "unrecognized arguments: a.yaml"),
    ],
)
def test_whoever_says_something_else_is_told_how(
    said: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        settings_file("api", said)
    assert ended.value.code == code
    printed = capsys.readouterr()
    assert words in printed.out + printed.err
    assert "usage: resolute-api" in printed.out + printed.err
