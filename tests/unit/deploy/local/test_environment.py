"""What services get of the environment of whoever starts the system."""

from __future__ import annotations

import pytest

from deploy.local.supervision.environment import service_environment, supervisor_environment

USUAL = {"PATH": "/bin", "https_proxy": "http://proxy:3128", "LC_ALL": "C", "RESOLUTE_BUS__USER": "me"}
CLOUD = {"AWS_ACCESS_KEY_ID": "a", "GOOGLE_APPLICATION_CREDENTIALS": "/key"}
LOGIN = {"DET_OIDC_CLIENT_SECRET": "s"}
OWN = {"WANDB_API_KEY": "w", "GITHUB_TOKEN": "g", "DET_PASS": "d", "PGPASSWORD": "p"}


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("api", {**USUAL, **CLOUD, **LOGIN}),
        ("launcher", {**USUAL, **CLOUD, "KUBECONFIG": "/k"}),
        ("launcher-gpu", {**USUAL, **CLOUD, "KUBECONFIG": "/k"}),
        ("scheduler-standby", USUAL),
        ("logs", USUAL),
        ("postgres", USUAL),
        ("nats", USUAL),
    ],
)
def test_each_service_gets_what_it_needs(service: str, expected: dict[str, str]) -> None:
    assert service_environment(service, {**USUAL, **CLOUD, **LOGIN, **OWN, "KUBECONFIG": "/k"}) == expected


def test_launchers_get_what_they_are_told_to_give_to_tasks() -> None:
    told = {"RESOLUTE_PROCESS__PASS_ENVIRONMENT": '["WANDB_API_KEY", GITHUB_TOKEN]'}
    environ = {**OWN, **told}
    wanted = {**told, "WANDB_API_KEY": "w", "GITHUB_TOKEN": "g"}
    assert service_environment("launcher", environ) == supervisor_environment(environ) == wanted
    assert service_environment("api", environ) == told


def test_services_keep_the_bytecode_of_what_they_compile() -> None:
    environ = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    assert service_environment("api", environ) == supervisor_environment(environ) == {"PYTHONUNBUFFERED": "1"}
