"""A provider of OpenID Connect, for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.oidc_provider import OidcStandIn, oidc_provider


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcStandIn]:
    with oidc_provider() as provider:
        yield provider
