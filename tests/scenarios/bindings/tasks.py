"""Notebooks, TensorBoards, shells, commands, generic tasks, templates, the queue."""

from __future__ import annotations

from typing import Any, Final

from tests.scenarios.bindings.call import Call


def _of_all(noun: str, **launch: Any) -> tuple[Call, ...]:
    """What there is for interactive tasks of each kind."""
    title, ident = noun.title(), f"{noun}Id"
    body = {"config": {"entrypoint": ["true"]}, **launch}
    return (
        Call(f"post_Launch{title}", {"body": body}),
        Call(f"get_Get{title}", {ident: f"{{{noun}}}"}),
        Call(f"get_Get{title}s"),
        Call(
            f"post_Set{title}Priority",
            {ident: f"{{{noun}}}", "body": {"priority": 7}},
        ),
        Call(f"post_Kill{title}", {ident: f"{{new_{noun}}}"}),
    )


CALLS: Final = (
    *_of_all("notebook"),
    *_of_all("shell"),
    *_of_all("command"),
    *_of_all("tensorboard", experimentIds=["{experiment}"]),
    Call("put_IdleNotebook", {"notebookId": "{notebook}", "body": {"idle": True}}),
    Call(
        "post_CreateGenericTask",
        {"body": {"config": "entrypoint: ['true']\nresources: {{slots: 0}}\n", "contextDirectory": []}},
    ),
    Call("get_GetGenericTaskConfig", {"taskId": "{generic}"}),
    Call("post_KillGenericTask", {"taskId": "{new_generic}", "body": {"taskId": "", "killFromRoot": False}}),
    Call("post_PauseGenericTask", {"taskId": "{new_generic}"}),
    Call("post_UnpauseGenericTask", {"taskId": "{paused_generic}"}),
    Call("get_GetTask", {"taskId": "{task}"}),
    Call("get_GetTasks"),
    Call("get_GetActiveTasksCount"),
    Call("get_GetTaskAcceleratorData", {"taskId": "{task}"}),
    Call("get_GetTaskContextDirectory", {"taskId": "{generic}"}),
    Call("get_TaskLogs", {"taskId": "{task}"}),
    Call("get_TaskLogsFields", {"taskId": "{task}"}),
    Call("post_PostTaskLogs", {"body": {"logs": [{"taskId": "{running_task}", "log": "hello"}]}}),
    Call("post_CleanupLogs"),
    Call("post_PostTemplate", {"template_name": "{nonce}", "body": {"name": "", "config": {"a": 1}, "workspaceId": 1}}),
    Call("put_PutTemplate", {"template_name": "{nonce}", "body": {"name": "", "config": {"a": 1}, "workspaceId": 1}}),
    Call("get_GetTemplate", {"templateName": "{template}"}),
    Call("get_GetTemplates"),
    Call("patch_PatchTemplateConfig", {"templateName": "{template}", "body": {"a": 2}}),
    Call("patch_PatchTemplateName", {"body": {"oldName": "{new_template}", "newName": "{nonce}"}}),
    Call("delete_DeleteTemplate", {"templateName": "{new_template}"}),
    Call("get_GetJobs", {"resourcePool": "gpus"}),
    Call("get_GetJobsV2", {"resourcePool": "gpus"}),
    Call("get_GetJobQueueStats"),
    Call("post_UpdateJobQueue", {"body": {"updates": [{"jobId": "{job}", "priority": 5}]}}),
)
