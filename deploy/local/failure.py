"""Failure to start, explained to the person at the terminal."""


class CannotStart(Exception):
    """The message says what is missing and how to get it."""
