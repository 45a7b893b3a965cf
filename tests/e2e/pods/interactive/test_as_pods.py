"""What people do with interactive tasks, once more with the tasks as pods (B21)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import pytest
import yaml

from tests.e2e.interactive.test_commands import (  # noqa: F401  collected here, where ``user`` is that of the cluster
    test_a_command_that_fails_says_so_last,
    test_a_command_with_a_command_of_many_words,
    test_a_context_of_ten_megabytes,
    test_templates_and_workspaces,
    test_what_a_command_prints_and_how_it_ended_is_followed,
)
from tests.e2e.interactive.test_notebooks import test_a_notebook_from_its_start_to_its_end  # noqa: F401
from tests.e2e.interactive.test_shells import (  # noqa: F401
    test_a_login_shell_has_the_path_of_the_task,
    test_a_port_is_forwarded_as_editors_do,
    test_det_works_inside_as_the_user,
    test_files_of_200_megabytes_travel_both_ways,
    test_five_sessions_at_once,
)
from tests.e2e.interactive.test_tensorboards import (  # noqa: F401
    test_a_tensorboard_over_two_experiments_with_their_own_storages,
)
from tests.e2e.interactive.users import User
from tests.e2e.pods.conftest import OnCluster
from tests.e2e.pods.test_containers import CASES, Case, with_image
from tests.harness.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.kubelet, pytest.mark.interactive, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shell(user: User) -> Iterator[str]:
    task = user.open_when_ready("shell", "--config", "resources.slots=0")
    yield task
    user.kill("shell", task)


@pytest.mark.parametrize(
    ("kind", "needs"), [("notebook", "needs JupyterLab"), ("shell", "needs the program /usr/sbin/sshd")]
)
def test_an_image_without_the_program_is_named_in_the_exit_status(user: User, kind: str, needs: str) -> None:
    """Of ``local/python:3.11``, which has sshd, the directory is hidden."""
    hide = '{"host_path": "/var/empty", "container_path": "/usr/sbin"}'
    hidden = ("--config", f"bind_mounts={hide}") if kind == "shell" else ()
    image = ("--config", "environment.image=local/det-env:1")
    task = user.start(kind, "--config", "resources.slots=0", *image, *hidden)
    assert needs in user.exit_status(kind, task)
    assert needs in user.log(task)


@pytest.mark.parametrize("case", [case for case in CASES if not case.slots], ids=attrgetter("name"))
def test_pod_specs_of_commands(case: Case, user: User, interactive_image: str, tmp_path: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": with_image(case.spec, interactive_image)}
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"resources": {"slots": 0}, "environment": {"pod_spec": pod}}))
    task = user.start("command", "--config-file", str(config), case.entrypoint)
    status = user.exit_status("command", task)
    assert (status == "allocation exited successfully") is (case.state == "STATE_COMPLETED")
    log = user.log(task)
    assert case.says in log
    assert "never seen" not in log


def test_a_log_is_followed_to_its_end_without_gaps_and_repetitions(user: User) -> None:
    """Once while it is written, and once more afterwards."""
    printed = user.det("cmd", "run", "--config", "resources.slots=0", "for n in $(seq 3000); do echo line $n; done")
    task = re.findall(r"\(id: ([0-9a-f-]{36})", printed)[0]
    for text in (printed, user.det("task", "logs", "-f", task)):
        assert re.findall(r"\|\| line (\d+)$", text, re.MULTILINE) == [str(number) for number in range(1, 3001)]
        assert text.rindex("|| line 3000") < text.index("resources exited successfully")


def test_nothing_is_left_of_tasks_that_have_ended(user: User, on_cluster: OnCluster) -> None:
    task = user.open_when_ready("shell", "--config", "resources.slots=0")
    selector = f"determined.ai/task_id={task}"
    assert on_cluster.kubectl.names("pods", selector)
    user.kill("shell", task)
    for kind in ("pods", "jobs", "configmaps", "secrets"):
        wait_until(lambda kind=kind: not on_cluster.kubectl.names(kind, selector), what=f"no {kind} are left")
