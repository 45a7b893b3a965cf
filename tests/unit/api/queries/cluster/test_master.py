"""Secrets of the configuration, masked for whoever reads it."""

from __future__ import annotations

import msgspec

from libs.cluster.config import (
    ClusterConfig,
    PoolConfig,
    ResourceManagerConfig,
    SecurityConfig,
)
from libs.config import MASK
from services.api.queries.cluster.master import shown_config


def test_secrets_of_the_configuration_are_masked_wherever_they_are() -> None:
    defaults = {
        "registry_auth": {"username": "me", "password": "P", "identitytoken": "T"},
        "cpu_pod_spec": {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}},
    }
    config = ClusterConfig(
        security=SecurityConfig(initial_user_password="I"),
        resource_pools=(PoolConfig(pool_name="default", task_container_defaults=defaults),),
        checkpoint_storage={"type": "azure", "container": "c", "connection_string": "S"},
    )
    shown = shown_config(config, log_level="info")
    assert shown["security"]["initial_user_password"] == MASK
    (pool,) = shown["resource_pools"]
    assert pool["task_container_defaults"]["registry_auth"] == {
        "username": "me",
        "password": MASK,
        "identitytoken": MASK,
    }
    assert pool["task_container_defaults"]["cpu_pod_spec"] == defaults["cpu_pod_spec"]
    assert shown["checkpoint_storage"] == {"type": "azure", "container": "c", "connection_string": MASK}
    assert shown["log"] == {"level": "info", "color": True}


def test_what_a_slot_is_stands_there_where_nobody_said_it() -> None:
    for kind, slot_type in (("kubernetes", "cuda"), ("process", "cpu")):
        config = ClusterConfig(resource_manager=msgspec.convert({"type": kind}, ResourceManagerConfig))
        assert shown_config(config, log_level="info")["resource_manager"]["slot_type"] == slot_type


def test_secrets_that_are_not_set_are_seen_not_to_be() -> None:
    assert shown_config(ClusterConfig(), log_level="info")["security"]["initial_user_password"] == ""
