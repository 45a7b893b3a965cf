"""The provider of an installation that has one; without one, nothing of what it takes is loaded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from libs.clock import Clock
from libs.cluster.oidc import SECRET_VARIABLE, OidcConfig

if TYPE_CHECKING:
    from services.api.oidc.provider import OidcProvider


@asynccontextmanager
async def oidc_provider(
    config: OidcConfig, clock: Clock, environ: Mapping[str, str]
) -> AsyncIterator[OidcProvider | None]:
    """None when there is none. It is not asked for anything before somebody logs in."""
    if not config.enabled:
        yield None
        return
    from services.api.oidc.provider import OidcProvider  # noqa: PLC0415  # ten megabytes with its libraries

    provider = OidcProvider(config, client_secret=environ.get(SECRET_VARIABLE) or config.client_secret, clock=clock)
    try:
        yield provider
    finally:
        await provider.close()
