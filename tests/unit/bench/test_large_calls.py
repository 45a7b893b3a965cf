"""The benchmark of a large database asks for everything that the client can read."""

from __future__ import annotations

from typing import Final

from tests.bench.reading.large_calls import METHODS, WHY_LONGER
from tests.bench.reading.large_commands import CHANGES, COMMANDS, LEFT_OUT
from tests.scenarios.leaves import LEAVES
from tests.scenarios.sdk_methods import METHODS as SDK_METHODS

_CHANGES: Final = (
    "activate add add-user archive assign-role cancel change-name change-password cleanup-logs clear continue create "
    "deactivate delete delete-tb-files description disable edit enable fork gc-policy kill link-with-agent-user "
    "log-retention login logout max-slots move name pause priority register-version remove remove-user rename replace "
    "revoke rm run set start unarchive unassign-role unpause update update-batch weight"
)
"""Last words of commands that change something."""
_CHANGE: Final = (
    "activate add archive cancel change create deactivate delete kill link logout move pause register reload remove "
    "rename replace set unarchive write"
)
"""First words of methods that change something, or read their object again."""
_ELSEWHERE: Final = {
    "Checkpoint.download": "reads files of checkpoints, of which there are none here",
    "Checkpoint.get_pachyderm_commit": "asks the api nothing",
    "Determined.get_session_username": "asks the api nothing",
    "Determined.list_oauth_clients": "is refused where no provider of identities asks",
    "Determined.stream_trials_metrics": "iter_trials_metrics",
    "Determined.stream_trials_training_metrics": "stream_trials_validation_metrics",
    "Experiment.get_pachyderm_config": "asks the api nothing",
    "Experiment.get_trials": "list_trials",
    "Model.get_versions": "get_model",
    "Trial.get_checkpoints": "Trial.list_checkpoints",
    "Trial.logs": "Trial.iter_logs",
    "Trial.stream_metrics": "Trial.iter_metrics",
    "Trial.stream_training_metrics": "Trial.stream_validation_metrics",
}
"""Methods that are not asked for: why, or which method stands for them since it asks for the same."""


def test_every_command_that_reads_is_asked_for() -> None:
    changes = {"master config set", "template set-value config"}
    reads = {leaf.command for leaf in LEAVES if leaf.command.split()[-1] not in _CHANGES.split()} - changes
    asked = {leaf for leaf in reads if any(f"{command} ".startswith(f"{leaf} ") for command in COMMANDS)}
    assert reads - asked == set(LEFT_OUT)


def test_every_method_that_reads_is_asked_for() -> None:
    reads = {each.name for each in SDK_METHODS if each.name.split(".")[1].split("_")[0] not in _CHANGE.split()}
    asked = {name for name in reads if any(f".{name.split('.')[1]}(" in method for method in METHODS.values())}
    assert reads - asked == set(_ELSEWHERE)
    assert {name for name in _ELSEWHERE.values() if " " not in name} <= set(METHODS)


def test_reasons_are_of_calls_that_there_are() -> None:
    assert {name.removeprefix("det ") for name in WHY_LONGER if name.startswith("det ")} <= {*COMMANDS, *CHANGES}
    assert {name.removeprefix("SDK ") for name in WHY_LONGER if name.startswith("SDK ")} <= set(METHODS)
