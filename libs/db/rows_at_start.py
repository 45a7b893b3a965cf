"""What a database holds before anybody has used it: how a new installation is told from one that is in use."""

from __future__ import annotations

from typing import Final

ROWS_AT_START: Final = {
    "cluster": 1,
    "users": 2,
    "groups": 2,
    "role_assignments": 1,
    "workspaces": 1,
    "projects": 1,
    "project_keys": 1,
}
"""Number of rows by table; tables that are not named are empty."""
