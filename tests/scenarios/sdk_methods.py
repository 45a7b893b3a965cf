"""Every public method of the classes of the client's SDK, as an expression of Python with objects that there are, by
their names in braces (``tests/integration/api/whole_client/objects.py``); ``determined`` is a ``Determined``.

A method of a module-level function of ``determined.experimental.client`` is the same method of ``Determined``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Method:
    """``refused`` is in the error that it ends with, for the reason in ``because``."""

    name: str
    expression: str
    refused: str = ""
    because: str = ""


def _of(kind: str, found: str, **calls: str) -> tuple[Method, ...]:
    """Methods of what the expression ``found`` finds; in ``calls`` the arguments by the name of the method."""
    return tuple(Method(f"{kind}.{name}", f"{found}.{name}({arguments})") for name, arguments in calls.items())


_SORTED: Final = "sort_by='loss', smaller_is_better=True"
_NO_OAUTH: Final = "API not found: oauth2/clients"
_EDITION: Final = "SCIM with OAuth is not configured, for which there are clients"

METHODS: Final[tuple[Method, ...]] = (
    *_of(
        "Determined",
        "determined",
        create_user="'{nonce}', False, 'Passw0rd!', remote=False",
        get_user_by_id="{user_id}",
        get_user_by_name="'{user}'",
        whoami="",
        get_session_username="",
        list_users="",
        create_experiment="'{experiment_file}', None",
        get_experiment="{experiment}",
        list_experiments="",
        get_trial="{trial}",
        get_checkpoint="'{checkpoint}'",
        get_workspace="'{workspace}'",
        list_workspaces="",
        create_workspace="'{nonce}'",
        delete_workspace="'{new_workspace}'",
        create_model="'{nonce}'",
        get_model="'{model}'",
        get_model_by_id="{model_id}",
        get_models="",
        list_models="",
        get_model_labels="",
        stream_trials_metrics="[{trial}], 'training'",
        iter_trials_metrics="[{trial}], 'training'",
        stream_trials_training_metrics="[{trial}]",
        stream_trials_validation_metrics="[{trial}]",
    ),
    Method("Determined.logout", "login('{new_user}', 'Passw0rd!').logout()"),
    Method("Determined.list_oauth_clients", "determined.list_oauth_clients()", _NO_OAUTH, _EDITION),
    Method("Determined.add_oauth_client", "determined.add_oauth_client('https://a', 'a')", _NO_OAUTH, _EDITION),
    Method("Determined.remove_oauth_client", "determined.remove_oauth_client('a')", _NO_OAUTH, _EDITION),
    *_of(
        "Experiment",
        "determined.get_experiment({experiment})",
        reload="",
        list_trials="",
        get_trials="",
        iter_trials="",
        await_first_trial="",
        wait="interval=0.1",
        download_code="'{out}'",
        list_checkpoints="",
        top_checkpoint="",
        top_n_checkpoints="1",
        add_label="'added'",
        remove_label="'kept'",
        set_labels="{{'a'}}",
        set_description="'described'",
        set_notes="'noted'",
    ),
    *_of(
        "Experiment",
        "determined.get_experiment({new_experiment})",
        set_name="'renamed'",
        archive="",
        delete="",
        delete_tensorboard_files="",
        move_to_project="'{workspace}', '{project}'",
    ),
    *_of("Experiment", "determined.get_experiment({new_live_experiment})", cancel="", kill="", pause=""),
    *_of("Experiment", "determined.get_experiment({new_paused_experiment})", activate=""),
    *_of("Experiment", "determined.get_experiment({new_archived_experiment})", unarchive=""),
    Method(
        "Experiment.get_pachyderm_config",
        "determined.get_experiment({experiment}).get_pachyderm_config()",
        "No Pachyderm configuration found",
        "nobody has configured it",
    ),
    *_of(
        "Trial",
        "determined.get_trial({trial})",
        reload="",
        get_experiment="",
        iter_logs="",
        logs="",
        list_checkpoints="",
        get_checkpoints="",
        top_checkpoint=_SORTED,
        select_checkpoint="latest=True",
        iter_metrics="'training'",
        stream_metrics="'training'",
        stream_training_metrics="",
        stream_validation_metrics="",
    ),
    *_of("Trial", "determined.get_trial({live_trial})", kill=""),
    *_of(
        "Checkpoint",
        "determined.get_checkpoint('{checkpoint}')",
        reload="",
        download="'{out}'",
        write_metadata_file="'{out}/metadata.json'",
        add_metadata="{{'stage': 'tested'}}",
        remove_metadata="['stage']",
        get_metrics="'training'",
    ),
    Method(
        "Checkpoint.get_pachyderm_commit",
        "determined.get_checkpoint('{checkpoint}').get_pachyderm_commit()",
        "Pachyderm configuration not found",
        "nobody has configured it",
    ),
    *_of("Checkpoint", "determined.get_checkpoint('{new_checkpoint}')", remove_files="['*.pt']", delete=""),
    *_of(
        "Model",
        "determined.get_model('{model}')",
        reload="",
        get_version="",
        get_versions="",
        list_versions="",
        register_version="'{new_checkpoint}'",
        add_metadata="{{'stage': 'tested'}}",
        remove_metadata="['stage']",
        set_labels="['a']",
        set_description="'described'",
    ),
    *_of("Model", "determined.get_model('{new_model}')", move_to_workspace="'{workspace}'", archive="", delete=""),
    *_of("Model", "determined.get_model('{archived_model}')", unarchive=""),
    *_of(
        "ModelVersion",
        "determined.get_model('{new_model}').get_version(1)",
        reload="",
        set_name="'first'",
        set_notes="'noted'",
        get_metrics="",
        iter_metrics="",
        delete="",
    ),
    *_of(
        "User",
        "determined.get_user_by_name('{new_user}')",
        reload="",
        rename="'{nonce}'",
        deactivate="",
        change_display_name="'Ada {nonce}'",
        change_password="'Passw0rd?'",
        link_with_agent="agent_uid=7, agent_gid=7, agent_user='ada', agent_group='lab'",
    ),
    *_of("User", "determined.get_user_by_name('{inactive_user}')", activate=""),
    *_of(
        "Workspace",
        "determined.get_workspace('{workspace}')",
        reload="",
        list_pools="",
        create_project="'{nonce}'",
        delete_project="'{new_project}'",
        get_project="'{project}'",
        list_projects="",
    ),
    *_of(
        "Project",
        "determined.get_workspace('{workspace}').get_project('{new_project}')",
        reload="",
        list_experiments="",
        set_description="'described'",
        set_key="'KEYED'",
        set_name="'{nonce}'",
        archive="",
        add_note="'todo', 'listen'",
    ),
    Method(
        "Project.remove_note",
        "(lambda project: (project.add_note('todo', 'listen'), project.remove_note('todo')))"
        "(determined.get_workspace('{workspace}').get_project('{new_project}'))",
    ),
    *_of("Project", "determined.get_workspace('{workspace}').get_project('{archived_project}')", unarchive=""),
    *_of(
        "ResourcePool",
        "pool('others')",
        add_bindings="['{new_workspace}']",
        remove_bindings="['{pool_workspace}']",
        list_workspaces="",
        replace_bindings="['{new_pool_workspace}']",
    ),
)
