"""``det notebook | shell | command | tensorboard | task | job | template``."""

from __future__ import annotations

from typing import Final

from tests.scenarios.leaves.leaf import Leaf


def _of_all(noun: str) -> tuple[Leaf, ...]:
    """What there is for interactive tasks of each kind."""
    task = f"{{{noun}}}"
    return (
        Leaf(f"{noun} config", task, says="resources"),
        Leaf(f"{noun} kill", f"{{new_{noun}}}", says="Killed"),
        Leaf(f"{noun} list", formats="json csv"),
        Leaf(f"{noun} logs", task, formats="json", chatty=True, says="hello"),
        Leaf(
            f"{noun} set priority",
            f"{task} 7",
            says="priority",
            unknown_code=0,
            because="the client says that it skips a task, and calls that a success",
        ),
    )


LEAVES: Final = (
    *_of_all("notebook"),
    Leaf("notebook open", "{notebook}"),
    Leaf("notebook start", "--detach"),
    *_of_all("shell"),
    Leaf("shell open", "{shell}"),
    Leaf("shell show-ssh-command", "{shell}", says="ssh -o"),
    Leaf("shell show_ssh_command", "{shell}", says="ssh -o"),
    Leaf("shell start", "--detach"),
    *_of_all("command"),
    Leaf("command describe", "{command}", formats="json csv"),
    Leaf("command run", "--detach true"),
    *_of_all("tensorboard"),
    Leaf("tensorboard open", "{tensorboard}"),
    Leaf("tensorboard start", "{experiment} --detach"),
    Leaf("task cleanup-logs"),
    Leaf("task config", "{generic}", formats="json"),
    Leaf("task create", "{task_file}"),
    Leaf("task fork", "{generic}"),
    Leaf("task kill", "{new_generic}"),
    Leaf("task list", formats="json csv"),
    Leaf("task logs", "{task}", formats="json", chatty=True, says="hello"),
    Leaf("task pause", "{new_generic}"),
    Leaf("task unpause", "{paused_generic}"),
    Leaf("job list", formats="json yaml csv"),
    Leaf("job update", "{job} --priority 5"),
    Leaf("job update-batch", "{job}.priority=6"),
    Leaf("template create", "{nonce} {template_file}"),
    Leaf("template describe", "{template}", says="max_restarts"),
    Leaf("template list", "--details", says="max_restarts"),
    Leaf("template remove", "{new_template}"),
    Leaf("template set", "{nonce} {template_file}"),
    Leaf("template set-value config", "{new_template} {template_file}"),
)
