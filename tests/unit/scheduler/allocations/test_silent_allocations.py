from __future__ import annotations

from services.scheduler.allocations.silent_allocations import SilentAllocations


def test_at_the_start_all_are_to_be_asked_about_until_each_was() -> None:
    silence = SilentAllocations(10)
    assert silence.since_long({"a": 1, "b": 2}, now=0) == ["a", "b"]
    silence.answered("a", now=0)
    assert silence.since_long({"a": 1, "b": 2}, now=1) == ["b"]


def test_who_says_nothing_for_long_is_silent() -> None:
    silence = quiet()
    assert silence.since_long({"a": 1, "b": 1}, now=0) == []
    assert silence.since_long({"a": 1, "b": 2}, now=6) == []
    assert silence.since_long({"a": 1, "b": 2}, now=10) == ["a"]
    silence.answered("a", now=10)
    assert silence.since_long({"a": 1, "b": 2}, now=16) == ["b"]
    assert silence.since_long({"a": 1}, now=20) == ["a"]


def test_who_is_new_or_was_away_is_given_time() -> None:
    silence = quiet()
    silence.since_long({"a": 1}, now=0)
    silence.since_long({}, now=1)
    assert silence.since_long({"a": 1}, now=100) == []
    assert silence.since_long({"a": 1}, now=110) == ["a"]


def test_after_a_gap_all_count_as_silent() -> None:
    silence = quiet()
    silence.since_long({"a": 1}, now=0)
    silence.assume_all()
    assert silence.since_long({"a": 2, "b": 1}, now=1) == ["a", "b"]


def quiet() -> SilentAllocations:
    """One that has asked about everything there was."""
    silence = SilentAllocations(10)
    silence.since_long({}, now=0)
    return silence
