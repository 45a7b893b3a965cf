"""Environment variables that services get of whoever starts the system: those that they need, by name. Pure.

The environment of a person may hold keys that are nobody else's business. What is not listed here is passed on to no
process, and nothing of it is written to a file: the supervisor has these variables in its own environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_EVERYBODY: Final = frozenset(
    {
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "NO_PROXY",
        "PATH",
        "REQUESTS_CA_BUNDLE",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
    }
)
"""In capitals or not, as names of proxies are written in both ways."""
_EVERYBODY_PREFIXES: Final = ("LC_", "LD_", "MALLOC_", "OTEL_", "PYTHON", "RESOLUTE_")
_NOBODY: Final = "PYTHONDONTWRITEBYTECODE"
"""Images of Python often set it. Every service would then compile the same modules again at each of its starts, which
takes several times as long as everything else that it does until it is ready."""
_CLOUDS: Final = ("AWS_", "AZURE_", "CLOUDSDK_", "GOOGLE_", "STORAGE_EMULATOR_HOST")
_OF_SERVICE: Final[Mapping[str, tuple[str, ...]]] = {
    # Reads checkpoints in buckets; the secret of the client is that of logins at a provider (libs/cluster/oidc.py).
    "api": ("DET_OIDC_CLIENT_SECRET", *_CLOUDS),
    "launcher": ("CUDA_", "KUBECONFIG", "NVIDIA_", *_CLOUDS),  # clusters of clouds are reached by programs of theirs
}
"""Service -> beginnings of names that it gets besides."""
_FOR_TASKS: Final = "RESOLUTE_PROCESS__PASS_ENVIRONMENT"
"""Names of variables that launchers give to tasks: a list as in YAML."""


def supervisor_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What any of the services may need."""
    return {name: value for name, value in environ.items() if any(_needs(each, name, environ) for each in _OF_SERVICE)}


def service_environment(service: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What one process gets, by its name in the plan."""
    return {name: value for name, value in environ.items() if _needs(service, name, environ)}


def _needs(service: str, name: str, environ: Mapping[str, str]) -> bool:
    if name == _NOBODY:
        return False
    kind = service.partition("-")[0]
    if name.upper() in _EVERYBODY or name.startswith((*_EVERYBODY_PREFIXES, *_OF_SERVICE.get(kind, ()))):
        return True
    return kind == "launcher" and name in re.findall(r"[^\s,\[\]\"']+", environ.get(_FOR_TASKS, ""))
