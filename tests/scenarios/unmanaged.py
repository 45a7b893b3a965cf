"""Experiments that run elsewhere: docs/reference/experiments.md 12, docs/reference/harness-protocol.md 16."""

from __future__ import annotations

from typing import Any, NamedTuple

STATES = [
    ([], "PAUSED"),
    (["PAUSED"], "PAUSED"),
    (["PAUSED", "ERROR"], "ERROR"),
    (["ERROR", "COMPLETED"], "COMPLETED"),
    (["COMPLETED", "RUNNING", "ERROR"], "RUNNING"),
    # Both of them lost; and one lost among others.
    (["ERROR", "ERROR"], "ERROR"),
    (["COMPLETED", "ERROR", "ERROR"], "COMPLETED"),
    # An import may bring states that no trial reports.
    (["CANCELED"], "PAUSED"),
]
"""States of the trials -> that of their experiment."""

ELSEWHERE = "{name: elsewhere, searcher: {name: single, metric: loss}, description: null}"


class Refusal(NamedTuple):
    method: str
    path: str
    body: dict[str, Any]
    message: str
    status: int = 400


WANTED = {"experimentId": "{elsewhere}", "unmanaged": True}
ONLY = "only unmanaged trials are supported"
BY_NAME = "/api/v1/experiments/by-external-id/x"

REFUSALS = [
    Refusal("PUT", BY_NAME, {"config": ELSEWHERE}, "only unmanaged experiments are supported"),
    Refusal("PUT", BY_NAME, {"config": ELSEWHERE, "unmanaged": True, "parentId": "{managed}"}, "parentId"),
    Refusal("PUT", BY_NAME, {"config": "a: [", "unmanaged": True}, "invalid YAML"),
    Refusal("POST", "/api/v1/trials", {"experimentId": "{elsewhere}"}, ONLY),
    Refusal(
        "POST",
        "/api/v1/trials",
        {"experimentId": "{managed}", "unmanaged": True},
        "trials can only be created on unmanaged experiments",
    ),
    Refusal("POST", "/api/v1/trials", {"experimentId": 999_999, "unmanaged": True}, "not found", 404),
    Refusal("POST", "/api/v1/trials", {"experimentId": "{going}", "unmanaged": True}, "is being deleted"),
    Refusal("PUT", "/api/v1/trials", {}, "externalTrialId"),
    Refusal("PUT", "/api/v1/trials", {"createTrialRequest": WANTED, "externalTrialId": "x" * 513}, "at most 512"),
    Refusal("POST", "/api/v1/trials/{ours}/start", {"resume": True}, ONLY),
    Refusal("PATCH", "/api/v1/trials/{ours}", {}, ONLY),
    Refusal("PATCH", "/api/v1/trials/{ours}", {"state": "STATE_RUNNING"}, ONLY),
    Refusal("PATCH", "/api/v1/trials/{trial}", {"state": "STATE_QUEUED"}, "state: expected one of STATE_COMPLETED"),
    Refusal("PATCH", "/api/v1/trials/999999", {}, "trial '999999' not found", 404),
    Refusal("POST", "/api/v1/trials/999999/start", {}, "trial '999999' not found", 404),
    Refusal("POST", "/api/v1/trials/{gone}/start", {"resume": True}, "is being deleted"),
    Refusal("GET", "/api/v1/trials/by-external-id/x/y", {}, "trial 'x/y' not found", 404),
]
"""``{managed}`` is an experiment of this system and ``{ours}`` its trial, ``{going}`` one that is being deleted and
``{gone}`` its trial, ``{elsewhere}`` and ``{trial}`` run elsewhere."""
