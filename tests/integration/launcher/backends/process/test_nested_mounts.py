"""Whatever is mounted and hidden in whichever order: nothing hidden is seen, and all else is."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from services.launcher.backends.process.isolation.hidden_directories import is_within
from services.launcher.backends.process.isolation.mount_sources import MountLimits
from services.launcher.backends.process.isolation.mounts import Mount, build_view
from services.launcher.backends.process.isolation.namespaces import Way, enter_namespaces
from services.launcher.backends.process.isolation.probe import WAYS

DIRECTORIES = [
    *"ab",
    *(x + "/" + y for x in "ab" for y in "ab"),
    *(f"{x}/{y}/{z}" for x in "ab" for y in "ab" for z in "ab"),
]
SUBSETS = st.lists(st.sampled_from(DIRECTORIES), unique=True, max_size=5)
AT = "/given"


@settings(max_examples=40, deadline=None)
@given(hidden=SUBSETS, mountable=SUBSETS, mounted=st.sampled_from([".", *DIRECTORIES]))
def test_exactly_what_is_hidden_is_not_seen_in_a_mount(
    isolation: str, hidden: Sequence[str], mountable: Sequence[str], mounted: str
) -> None:
    with tempfile.TemporaryDirectory() as made:
        root = os.path.realpath(made)
        for directory in DIRECTORIES:
            os.makedirs(f"{root}/{directory}")
            Path(root, directory, "file").touch()
        limits = MountLimits(*([f"{root}/{path}" for path in paths] for paths in (hidden, mountable)))
        source = os.path.normpath(f"{root}/{mounted}")
        seen = seen_in(Mount(AT, source, is_of_order=True), WAYS[isolation], limits)
    below = [path for path in DIRECTORIES if mounted == "." or is_within(path, mounted)]
    if not is_seen(mounted, hidden, mountable):
        assert seen == "tasks may not see this directory"
    else:
        wanted = [path for path in below if is_seen(path, hidden, mountable)]
        assert seen == "\n".join(sorted(os.path.relpath(path, mounted) for path in wanted))


def is_seen(path: str, hidden: Collection[str], mountable: Collection[str]) -> bool:
    """The innermost directory that is named decides; what is named as both is hidden."""
    around = [named for named in (*hidden, *mountable) if is_within(path, named)]
    return not around or max(around, key=len) not in hidden


def seen_in(mount: Mount, way: Way, limits: MountLimits) -> str:
    """The directories whose file a process sees in what it has mounted, or why it could not be."""
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory() as scratch:
        pid = os.fork()
        if pid == 0:
            try:
                enter_namespaces(way._replace(with_pid_namespace=False))
                build_view(scratch, [mount], limits=limits, user=None, with_own_proc=False)
                found = [os.path.relpath(at, mount.target) for at, _, files in os.walk(mount.target) if "file" in files]
                os.write(writer, "\n".join(sorted(found)).encode())
            except BaseException as error:
                os.write(writer, str(error).partition(": ")[2].encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            seen = answer.read()
        os.waitpid(pid, 0)
    return seen
