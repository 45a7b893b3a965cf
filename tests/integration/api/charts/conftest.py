"""The replica that tasks talk to: what charts show was reported by tasks."""

from tests.integration.api.tasks.conftest import api, client, db, live_api, owner, run, to_rows

__all__ = ["api", "client", "db", "live_api", "owner", "run", "to_rows"]
