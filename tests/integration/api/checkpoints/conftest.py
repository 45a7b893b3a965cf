"""The replica that tasks talk to: what is told about trials and checkpoints comes from tasks."""

from tests.integration.api.tasks.conftest import api, client, db, live_api, owner, run, to_rows

__all__ = ["api", "client", "db", "live_api", "owner", "run", "to_rows"]
