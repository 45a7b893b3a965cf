"""Connections to both databases of an import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import asyncpg

from deploy.determined_import.refusal import ImportRefused
from libs.db.connecting.settings import asyncpg_url
from libs.db.failures import DRIVER_ERRORS

CONNECT_TIMEOUT_S: Final = 30.0


async def connect_or_refuse(url: str, which: str, server_settings: Mapping[str, str]) -> Any:
    """A connection whose statements may take as long as they like. Raises ImportRefused, which names it ``which``."""
    try:
        return await asyncpg.connect(
            asyncpg_url(url), timeout=CONNECT_TIMEOUT_S, command_timeout=None, server_settings=dict(server_settings)
        )
    except (OSError, *DRIVER_ERRORS) as error:
        raise ImportRefused(f"{which} does not answer: {error}") from error
