"""The files of docs/reference/harness-protocol.md section 5, and the command that uses them."""

from __future__ import annotations

import ast
import subprocess

import pytest

from libs.errors import InvalidRequest
from libs.events.orders import TaskFile, TaskSpec
from services.launcher.container.command import container_argv, entrypoint
from services.launcher.container.files import Placed, container_files
from services.launcher.files import load_scripts
from tests.unit.launcher.specs import task, trial

SCRIPTS = load_scripts()
RUN = "/run/determined"

# path -> mode; directories end in a slash, files of root begin with an exclamation mark
EVERY_TASK = {
    f"{RUN}/": 0o700,
    f"{RUN}/info/": 0o755,
    f"{RUN}/pythonuserbase/": 0o700,
    f"{RUN}/logs/": 0o700,
    f"{RUN}/workdir/": 0o700,
    f"{RUN}/task-setup.sh": 0o744,
    f"{RUN}/capture.py": 0o755,
    f"!{RUN}/etc/": 0o755,
    f"!{RUN}/etc/passwd": 0o644,
    f"!{RUN}/etc/shadow": 0o600,
    f"!{RUN}/etc/group": 0o644,
}
READY = {f"{RUN}/check_ready_logs.py": 0o700}
CASES = {
    "COMMAND": {f"{RUN}/command-entrypoint.sh": 0o700},
    "GENERIC": {f"{RUN}/generic-task-entrypoint.sh": 0o700},
    "TRIAL": {
        f"{RUN}/train/": 0o700,
        f"{RUN}/train/model/": 0o700,
        f"{RUN}/train/entrypoint.sh": 0o744,
        f"{RUN}/train/start.py": 0o744,
        f"{RUN}/ssh/": 0o700,
        f"{RUN}/ssh/authorized_keys": 0o600,
        f"{RUN}/ssh/id_rsa": 0o600,
        f"{RUN}/ssh/id_rsa.pub": 0o600,
        f"{RUN}/ssh/sshd_config": 0o600,
        "!/etc/ssh/ssh_config": 0o644,
    },
    "SHELL": {
        f"{RUN}/ssh/": 0o700,
        f"{RUN}/ssh/shell-entrypoint.sh": 0o700,
        f"{RUN}/ssh/authorize_keys.py": 0o700,
        f"{RUN}/ssh/sshd_config": 0o644,
        "!/etc/profile.d/zz-determined.sh": 0o644,
        **READY,
    },
    "NOTEBOOK": {
        f"{RUN}/jupyter/": 0o700,
        f"{RUN}/jupyter/config/": 0o700,
        f"{RUN}/jupyter/data/": 0o700,
        f"{RUN}/jupyter/runtime/": 0o700,
        f"{RUN}/jupyter/notebook-entrypoint.sh": 0o700,
        f"{RUN}/jupyter/check_idle.py": 0o700,
        f"{RUN}/workdir/README.ipynb": 0o644,
        **READY,
    },
    "TENSORBOARD": {
        f"{RUN}/tensorboard/": 0o700,
        f"{RUN}/tensorboard/tensorboard-entrypoint.sh": 0o700,
        **READY,
    },
    "CHECKPOINT_GC": {
        f"{RUN}/checkpoint_gc/": 0o700,
        f"{RUN}/checkpoint_gc/gc-checkpoints-entrypoint.sh": 0o700,
    },
}


def placed(spec: TaskSpec, master_cert: bytes | None = None) -> dict[str, Placed]:
    return {item.path: item for item in container_files(spec, scripts=SCRIPTS, master_cert=master_cert)}


@pytest.mark.parametrize("task_type", CASES)
def test_task_type_gets_exactly_these_files(task_type: str) -> None:
    spec = trial() if task_type == "TRIAL" else task(task_type)
    found = {
        f"{'!' if item.owner == 'root' else ''}{path}{'/' if item.content is None else ''}": item.mode
        for path, item in placed(spec).items()
    }
    assert found == {**EVERY_TASK, **CASES[task_type]}


@pytest.mark.parametrize("task_type", CASES)
def test_directories_come_before_what_is_in_them_and_the_entrypoint_is_there(task_type: str) -> None:
    spec = trial() if task_type == "TRIAL" else task(task_type)
    files = placed(spec)
    seen: set[str] = set()
    for path in files:
        parent = path.rpartition("/")[0]
        assert parent in seen or not parent.startswith(RUN)
        seen.add(path)
    script = files[entrypoint(spec)[0]]
    assert script.mode & 0o100
    assert script.content is not None
    assert script.content.startswith(b"#!/bin/bash")


def test_files_of_the_order_are_placed_with_their_directories() -> None:
    files = (
        TaskFile(path="ssh/id_rsa", content=b"key"),
        TaskFile(path=f"{RUN}/deep/er/file", content=b"x", mode=0o755),
    )
    found = placed(task("SHELL", files=files))
    assert found[f"{RUN}/ssh/id_rsa"] == Placed(f"{RUN}/ssh/id_rsa", 0o600, b"key")
    assert found[f"{RUN}/deep/er"] == Placed(f"{RUN}/deep/er", 0o700)
    assert found[f"{RUN}/deep/er/file"].mode == 0o755
    assert found[f"{RUN}/ssh"].mode == 0o700


@pytest.mark.parametrize("path", ["../etc/passwd", "/etc/passwd", "/run/determined", "a/../../x", "/run/determinedly"])
def test_files_of_the_order_stay_below_the_run_directory(path: str) -> None:
    with pytest.raises(InvalidRequest, match="is not below"):
        placed(task(files=(TaskFile(path=path, content=b""),)))


def test_identity_files() -> None:
    found = placed(task(work_dir="/home/$AGENT_USER"))
    assert found[f"{RUN}/etc/passwd"].content == b"al:x:1000:1001::/home/al:/bin/bash\n"
    assert found[f"{RUN}/etc/shadow"].content == b"al:*:::::::\n"
    assert found[f"{RUN}/etc/group"].content == b"als:x:1001:\n"
    assert f"{RUN}/workdir" not in found


def test_hook_and_certificate_are_there_when_there_are_some() -> None:
    found = placed(task(startup_hook="echo hook"), master_cert=b"PEM")
    assert found[f"{RUN}/dynamic-tcd-startup-hook.sh"] == Placed(
        f"{RUN}/dynamic-tcd-startup-hook.sh", 0o744, b"echo hook"
    )
    assert found[f"{RUN}/etc/ssl/master.crt"] == Placed(f"{RUN}/etc/ssl/master.crt", 0o644, b"PEM", "root")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (task(argv=("echo hi",)), (f"{RUN}/command-entrypoint.sh", "echo hi")),
        (task("GENERIC", argv=("a", "b")), (f"{RUN}/generic-task-entrypoint.sh", "a", "b")),
        (trial(argv=("ignored",)), (f"{RUN}/train/entrypoint.sh",)),
        (task("SHELL", argv=("-D", "-e")), (f"{RUN}/ssh/shell-entrypoint.sh", "-D", "-e")),
        (task("NOTEBOOK"), (f"{RUN}/jupyter/notebook-entrypoint.sh",)),
    ],
)
def test_entrypoint_of_each_type(spec: TaskSpec, expected: tuple[str, ...]) -> None:
    assert entrypoint(spec) == expected
    argv = container_argv(spec, python="/usr/bin/python3", when_full="block", cap_bytes=9)
    assert argv[:4] == ("/usr/bin/python3", "-I", "-S", f"{RUN}/capture.py")
    assert argv[argv.index("--") + 1 :] == expected


def test_python_of_the_wrapper_can_be_found_in_the_container() -> None:
    argv = container_argv(task(argv=("x",)), python=None, when_full="drop", cap_bytes=9)
    shown = subprocess.run(
        argv, env={"DET_PYTHON_EXECUTABLE": "echo", "PATH": "/bin:/usr/bin"}, capture_output=True, text=True, check=True
    )
    assert shown.stdout == (
        f"-I -S {RUN}/capture.py --dir {RUN}/logs --cap-bytes 9 --when-full drop -- {RUN}/command-entrypoint.sh x\n"
    )


@pytest.mark.parametrize("name", sorted(name for name in SCRIPTS if name.endswith(".py")))
def test_python_scripts_can_be_read_by_the_oldest_python_of_images(name: str) -> None:
    tree = ast.parse(SCRIPTS[name], feature_version=(3, 8))
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("name", sorted(name for name in SCRIPTS if name.endswith(".sh")))
def test_shell_scripts_are_bash(name: str) -> None:
    subprocess.run(["bash", "-n"], input=SCRIPTS[name], check=True)
