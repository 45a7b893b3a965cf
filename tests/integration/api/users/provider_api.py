"""An api whose users log in at a provider, at an address that the provider can send browsers back to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from deploy.local.servers.ports import free_port
from tests.harness.api import ApiProcess
from tests.harness.oidc_provider import CLIENT_ID, CLIENT_SECRET, OidcStandIn
from tests.integration.api.world import CLUSTER, World


@contextmanager
def api_with_provider(world: World, provider: OidcStandIn, name: str) -> Iterator[ApiProcess]:
    port = free_port()
    oidc = {
        "enabled": True,
        "provider": "Stand-in",
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "idp_sso_url": provider.issuer,
        "idp_recipient_url": f"http://127.0.0.1:{port}",
        "auto_provision_users": True,
    }
    path = world.directory / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(CLUSTER), "oidc": oidc}))
    http = {"host": "127.0.0.1", "port": port, "shutdown_grace_s": 1}
    with world.api(name, cluster_config=str(path), http=http) as api:
        yield api
