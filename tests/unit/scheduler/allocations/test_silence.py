from __future__ import annotations

from services.scheduler.allocations.silence import Silence


def test_at_the_start_all_are_to_be_asked_about_until_each_was() -> None:
    silence = Silence(10)
    assert silence.silent({"a": 1, "b": 2}, now=0) == ["a", "b"]
    silence.asked("a", now=0)
    assert silence.silent({"a": 1, "b": 2}, now=1) == ["b"]


def test_who_says_nothing_for_long_is_silent() -> None:
    silence = quiet()
    assert silence.silent({"a": 1, "b": 1}, now=0) == []
    assert silence.silent({"a": 1, "b": 2}, now=6) == []
    assert silence.silent({"a": 1, "b": 2}, now=10) == ["a"]
    silence.asked("a", now=10)
    assert silence.silent({"a": 1, "b": 2}, now=16) == ["b"]
    assert silence.silent({"a": 1}, now=20) == ["a"]


def test_who_is_new_or_was_away_is_given_time() -> None:
    silence = quiet()
    silence.silent({"a": 1}, now=0)
    silence.silent({}, now=1)
    assert silence.silent({"a": 1}, now=100) == []
    assert silence.silent({"a": 1}, now=110) == ["a"]


def test_doubt_makes_all_silent() -> None:
    silence = quiet()
    silence.silent({"a": 1}, now=0)
    silence.doubt()
    assert silence.silent({"a": 2, "b": 1}, now=1) == ["a", "b"]


def quiet() -> Silence:
    """One that has asked about everything there was."""
    silence = Silence(10)
    silence.silent({}, now=0)
    return silence
