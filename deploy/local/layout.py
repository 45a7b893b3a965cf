"""Layout of the state folder, and the ports and options that were chosen when it was made."""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from deploy.command_line import state_folder
from deploy.local.failure import CannotStart
from deploy.local.kubernetes import KubernetesOptions

EVERYWHERE: Final = "0.0.0.0"  # noqa: S104  # pods have to reach us
LOOPBACK: Final = "127.0.0.1"
MORE_BYTES: Final = 16 * 1024
"""By how much the next version of a file may be larger where its space is kept."""
SHARED: Final = 0o1777
"""Mode of a directory in which everybody may create files, and remove only his own."""
_AS_MADE: Final = frozenset({0o755, 0o750, 0o700})
"""Modes that a directory gets when root makes it with one of the usual umasks."""
DEFAULT_API_PORT: Final = 8080  # where the client looks when nobody tells it otherwise


@dataclass(frozen=True)
class Layout:
    """Paths below one state folder."""

    root: Path

    @classmethod
    def at(cls, state: str | None) -> Layout:
        return cls(state_folder(state))

    @property
    def options_file(self) -> Path:
        return self.root / "options.json"

    @property
    def plan_file(self) -> Path:
        """What the supervisor keeps running."""
        return self.root / "run" / "plan.json"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def config(self) -> Path:
        return self.root / "config"

    @property
    def nats(self) -> Path:
        return self.root / "nats"

    @property
    def streams(self) -> Path:
        """Where NATS keeps what it is given."""
        return self.nats / "jetstream"

    @property
    def bus_users(self) -> Path:
        """Passwords of the users of the bus."""
        return self.nats / "users.json"

    @property
    def subscriber(self) -> Path:
        """What a subscriber to events needs to connect: address, user and password as JSON."""
        return self.root / "subscriber.json"

    def named_subscriber(self, name: str) -> Path:
        """The same for one that has a name."""
        return self.root / "subscribers" / f"{name}.json"

    @property
    def initial_password(self) -> Path:
        """Of admin and determined, if one was made; nobody needs the file any more once it is known elsewhere."""
        return self.root / "initial-password"

    @property
    def services_password(self) -> Path:
        """Of the role that services have in the database."""
        return self.root / "services-password"

    @property
    def status_ports(self) -> Path:
        """Service -> port of its health and metrics, as JSON."""
        return self.root / "status-ports.json"

    @property
    def launcher(self) -> Path:
        return self.root / "launcher"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    def hold(self, service: str) -> Path:
        """While this file exists, the supervisor leaves the service to somebody else."""
        return self.run / f"{service}.hold"

    def record(self, service: str) -> Path:
        """Process id and start time of the running service, as the supervisor wrote them."""
        return self.run / f"{service}.json"

    def create(self) -> None:
        for folder in (self.root, self.run, self.logs, self.config, self.nats, self.launcher, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o755)
        self._open_checkpoints()

    def _open_checkpoints(self) -> None:
        """Let every linked user save checkpoints, and change only those that are his own, as in ``/tmp``.

        Only tasks that root starts run as linked users. A mode that an administrator has chosen is kept.
        """
        if os.geteuid() == 0 and stat.S_IMODE(self.checkpoints.stat().st_mode) in _AS_MADE:
            self.checkpoints.chmod(SHARED)


@dataclass(frozen=True)
class Options:
    """What was chosen at the first ``up``, kept so that the next one finds the same system."""

    api_port: int
    nats_port: int
    postgres_port: int
    postgres_data: str
    postgres_password: str
    logs_port: int
    python: str
    """Interpreter that tasks run with."""
    slots: int
    host: str = "127.0.0.1"
    cluster_config: str | None = None
    standby: bool = False
    """Whether a second scheduler stands by."""
    kubernetes: KubernetesOptions | None = None
    """Tasks are pods of a cluster; None: processes of this machine."""
    certificate: str | None = None
    """Of the api, when the cluster configuration has it serve HTTPS."""
    authority: str | None = None
    """What signs the certificate, when the cluster configuration names it."""
    subscribers: tuple[str, ...] = ()
    """Names of subscribers to events that have an account on the bus, besides the one without a name."""

    @property
    def trusted(self) -> str | None:
        """File of the certificates by which the api is known, when it serves HTTPS."""
        return self.authority or self.certificate

    @property
    def master_url(self) -> str:
        """Where clients on this machine reach the api."""
        return self._api_at("127.0.0.1" if self.host == EVERYWHERE else self.host)

    @property
    def task_host(self) -> str:
        """Where tasks reach this machine."""
        return self.kubernetes.address if self.kubernetes else "127.0.0.1"

    @property
    def task_master_url(self) -> str:
        """Where tasks reach the api."""
        return self._api_at(self.task_host)

    def _api_at(self, host: str) -> str:
        return f"{'https' if self.certificate else 'http'}://{host}:{self.api_port}"

    def cluster_file(self, layout: Layout) -> Path:
        """The cluster configuration that all services read."""
        return Path(self.cluster_config) if self.cluster_config else layout.config / "cluster.yaml"

    def save(self, layout: Layout) -> None:
        """What is as by default is left out: a release from before an option reads what does not use it."""
        defaults = {each.name: each.default for each in fields(self)}
        chosen = {name: value for name, value in asdict(self).items() if value != defaults[name]}
        write_private(layout.options_file, json.dumps(chosen, indent=2) + "\n", keep_space=True)

    @classmethod
    def load(cls, layout: Layout) -> Options | None:
        """The options of this state folder, or None when nothing was ever started in it."""
        kept = read_kept(layout.options_file)
        if not kept:
            return None
        known = {each.name for each in fields(cls)}
        try:
            if kept.get("kubernetes"):
                kept["kubernetes"] = KubernetesOptions(**kept["kubernetes"])
            kept["subscribers"] = tuple(kept.get("subscribers", ()))
            # Names that are not known are of a later release.
            return cls(**{name: value for name, value in kept.items() if name in known})
        except TypeError as error:
            raise CannotStart(_not_as_written(layout.options_file, error)) from error


def write_private(path: Path, text: str, *, keep_space: bool = False) -> None:
    """Write a file that only its owner may read, whole or not at all; one that says so already is left as it is.

    keep_space  for a file that has to be written on a full disk too: space for the next version is kept beside it
    Raises OSError, and the file is what it was.
    """
    if _says(path, text):
        return  # so that a full disk does not keep anybody from starting what he had
    partial = path.with_name(f"{path.name}.partial")
    content = text.encode()
    try:
        _overwrite(partial, content)
        partial.replace(path)
    except BaseException:
        if not keep_space:
            partial.unlink(missing_ok=True)
        raise
    if keep_space:
        with suppress(OSError):  # there may be space for this version alone
            _overwrite(partial, bytes(len(content) + MORE_BYTES))


def _overwrite(path: Path, content: bytes) -> None:
    """Use the space that the file has before any other."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "r+b", buffering=0) as file:
        os.fchmod(descriptor, 0o600)
        if (file.write(content) or 0) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        file.truncate()
        os.fsync(descriptor)


def _says(path: Path, text: str) -> bool:
    try:
        return path.read_text() == text and path.stat().st_mode & 0o077 == 0
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def read_kept(path: Path) -> dict[str, Any]:
    """The JSON object that is kept in a file; empty when there is no file yet. Raises CannotStart for anything else."""
    try:
        kept = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CannotStart(_not_as_written(path, error)) from error
    if not isinstance(kept, dict):
        raise CannotStart(_not_as_written(path, "it is no object"))
    return kept


def _not_as_written(path: Path, why: object) -> str:
    return f"{path} is not as `resolute up` wrote it: {why}; bring it back from a backup, or begin in another folder"
