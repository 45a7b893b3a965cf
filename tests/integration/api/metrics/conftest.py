"""The database that reports are written to."""

from tests.integration.api.tasks.conftest import db

__all__ = ["db"]
