"""Every command of ``det`` that reads, as it is typed on a small and on a large database; words in braces are fields of
``LargeRows``.
"""

from __future__ import annotations

from typing import Final

GENERIC: Final = "5d1ba3c4-9d3c-4a53-a6f2-0f3d7f2f4e01"
"""Id of the generic task: ``det task`` takes whole UUIDs only."""
_TIMES: Final = "2020-01-01T00:00:00 2020-01-02T00:00:00"
_USUAL: Final = "Uncategorized Uncategorized"

COMMANDS: Final = (
    "experiment list",
    "experiment list --all --pages 1",
    "experiment list --all --pages 1 --limit 20 --csv",
    "experiment list --all --csv",
    "experiment describe {shown}",
    "experiment describe {shown} --csv",
    "experiment describe {shown} --metrics --json",
    "experiment describe {shown} --metrics --outdir {out}",
    "experiment describe {wide_experiment}",
    "experiment describe {long_experiment} --metrics --csv",
    "experiment config {shown}",
    "experiment download-model-def {shown} --output-dir {out}",
    "experiment list-trials {shown}",
    "experiment list-trials {wide_experiment}",
    "experiment list-trials {long_experiment} --csv",
    "experiment list-checkpoints {shown}",
    "experiment list-checkpoints {shown} --best 5",
    "experiment list-checkpoints {long_experiment} --csv",
    "experiment logs {shown}",
    "experiment logs {shown} --json",
    "experiment wait {shown} --polling-interval 1",
    "trial describe {trial}",
    "trial describe {trial} --metrics --metrics-summary --json",
    "trial describe {long} --pages 1",
    "trial describe {long} --pages 1 --offset 900 --limit 50 --csv",
    "trial describe {wide} --pages 1",
    "trial logs {trial}",
    "trial logs {trial} --tail 2 --json",
    "trial support-bundle {trial} -o {out}",
    "job list",
    "job list --pages 1 --limit 20 --csv",
    "model list",
    "model list --sort-by name --json",
    "model describe model-1",
    "model list-versions model-1",
    "checkpoint describe {checkpoint}",
    "user list",
    "user whoami",
    "token list",
    "token describe {token}",
    "auth list-providers",
    "workspace list",
    "workspace describe Uncategorized",
    "workspace list-members Uncategorized",
    "workspace list-pools Uncategorized",
    "workspace list-projects Uncategorized",
    "workspace bindings list Uncategorized",
    f"project describe {_USUAL}",
    "project list Uncategorized",
    f"project list-experiments {_USUAL} --limit 20",
    f"project list-experiments {_USUAL} --all --limit 1000",
    "config-policies describe experiment",
    "config-policies describe tasks -w Uncategorized",
    "task list",
    f"task config {GENERIC}",
    f"task logs {GENERIC}",
    "command list --all",
    "command describe command-1",
    "command config command-1",
    "command logs command-1",
    "notebook list --all",
    "notebook config notebook-1",
    "notebook logs notebook-1",
    "shell list --all",
    "shell config shell-1",
    "shell logs shell-1",
    "tensorboard list --all",
    "tensorboard config tensorboard-1",
    "tensorboard logs tensorboard-1",
    "template list -d",
    "template describe usual",
    "agent list",
    "slot list",
    "resource-pool bindings list-workspaces default",
    "resources aggregated 2020-01-01 2020-01-07",
    "resources aggregated 2020-01 2020-03 --monthly",
    f"resources allocations {_TIMES}",
    f"resources raw {_TIMES}",
    "master info",
    "master logs --tail 1",
    "dev bindings call get_GetMe",
    "dev curl /api/v1/me",
    "preview-search {search}",
    "version",
)

_FILES: Final = "reads files of checkpoints, of which there are none here"
_RUNS: Final = "needs a task that runs"
_LOCAL: Final = "asks the api nothing"
_ROLES: Final = "is refused without roles"
_ADMIN: Final = "is for administrators"

LEFT_OUT: Final = {
    "checkpoint download": _FILES,
    "experiment download": _FILES,
    "trial download": _FILES,
    "notebook open": _RUNS,
    "shell open": _RUNS,
    "shell show-ssh-command": _RUNS,
    "shell show_ssh_command": _RUNS,
    "tensorboard open": _RUNS,
    "dev auth-token": _LOCAL,
    "dev bindings list": _LOCAL,
    "master cluster-message get": _ADMIN,
    "master config show": _ADMIN,
    "oauth client list": "is refused where no provider of identities asks",
    "rbac describe-role": _ROLES,
    "rbac list-groups-roles": _ROLES,
    "rbac list-roles": _ROLES,
    "rbac list-users-roles": _ROLES,
    "rbac my-permissions": _ROLES,
    "user-group describe": _ROLES,
    "user-group list": _ROLES,
}
"""Commands that read and are not measured, and why."""

CHANGES: Final = (
    "experiment label add {shown} new",
    "experiment label remove {shown} new",
    "experiment set description {shown} described",
    "experiment set name {shown} shown",
    "experiment set log-retention {shown} --days 5",
    "experiment archive {shown}; experiment unarchive {shown}",
    "experiment archive {wide_experiment}; experiment unarchive {wide_experiment}",
    "experiment archive {long_experiment}; experiment unarchive {long_experiment}",
    "experiment move {shown} Uncategorized Uncategorized",
    "experiment kill {shown}",
    "trial set log-retention {wide} --days 5",
)
"""Some that change something and may be repeated, or are taken back by the one behind the semicolon. They come last."""
