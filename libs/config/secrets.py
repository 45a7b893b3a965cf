"""Masks secrets of a configuration: from everybody, or from everybody but the owner of the experiment.

The passwords of registries and the keys of checkpoint storage usually are those of the cluster. An owner gets them,
because the SDK reads checkpoints from their storage by what the experiment says; others see that there are some.
Source: docs/reference/experiments.md 1.2 (data) and 1.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from libs.shapes.problems import ROOT, InvalidConfig, Problem, listing
from libs.shapes.shape import Object

MASK: Final = "********"
CREDENTIALS: Final = frozenset(
    {
        # of registry_auth
        "password",
        "auth",
        "identitytoken",
        "registrytoken",
        # of checkpoint_storage
        "access_key",
        "secret_key",
        "connection_string",
        "credential",
    }
)


def mask_secrets(config: Object, *, to_owner: bool) -> Object:
    """``config``, left unchanged, with every value under ``data.secrets`` hidden; its keys stay visible.

    to_owner  whether it is shown to the owner of the experiment; credentials are hidden from all others
    """
    masked = dict(config)
    data = masked.get("data")
    if isinstance(data, dict) and data.get("secrets") is not None:
        masked["data"] = {**data, "secrets": _hidden(data["secrets"])}
    if to_owner:
        return masked
    if "checkpoint_storage" in masked:
        masked["checkpoint_storage"] = mask_credentials(masked["checkpoint_storage"])
    environment = masked.get("environment")
    if isinstance(environment, dict) and "registry_auth" in environment:
        masked["environment"] = {**environment, "registry_auth": mask_credentials(environment["registry_auth"])}
    return masked


def mask_credentials(value: Any, names: frozenset[str] = CREDENTIALS) -> Any:
    """``value`` with every text hidden that has one of ``names``; what is not set stays visible as such."""
    if isinstance(value, dict):
        return {
            key: MASK if key in names and item and isinstance(item, str) else mask_credentials(item, names)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [mask_credentials(item, names) for item in value]
    return value


def check_unmasked(config: Object) -> None:
    """Refuse a configuration that was shown masked and comes back: it would be stored with the mask as its secret.

    Raises InvalidConfig, naming every field.
    """
    if masked := masked_secrets(config):
        raise InvalidConfig(listing(masked))


def masked_secrets(config: Object) -> list[Problem]:
    """A problem for every secret of which the configuration has the mask only."""
    secrets = (config.get("data") or {}).get("secrets")
    registry = (config.get("environment") or {}).get("registry_auth")
    masked = [
        *_masked_fields(secrets, f"{ROOT}.data.secrets"),
        *_masked_fields(registry, f"{ROOT}.environment.registry_auth"),
        *_masked_fields(config.get("checkpoint_storage"), f"{ROOT}.checkpoint_storage"),
    ]
    return [Problem(path, f"{MASK} hides a secret, give the secret itself") for path in masked]


def _masked_fields(value: Any, path: str) -> Iterator[str]:
    if value == MASK:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _masked_fields(item, f"{path}.{key}")


def _hidden(secrets: Any) -> Any:
    return dict.fromkeys(secrets, MASK) if isinstance(secrets, dict) else MASK
