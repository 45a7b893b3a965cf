"""Failure to start, explained to the person at the terminal."""

from libs.errors import ResoluteError


class CannotStart(ResoluteError):
    """The message says what is missing and how to get it."""


class PortHeld(CannotStart):
    """Somebody else listens on a port of this system."""
