"""The master, its log and configuration, agents and slots, pools, usage."""

from __future__ import annotations

from typing import Final

from tests.scenarios.bindings.call import Call

_SLOT: Final = {"agentId": "a", "slotId": "000"}

CALLS: Final = (
    Call("get_health"),
    Call("get_GetMaster"),
    Call("get_GetTelemetry"),
    Call("get_GetMasterConfig"),
    Call(
        "patch_PatchMasterConfig",
        {
            "body": {
                "config": {"log": {"level": "LOG_LEVEL_DEBUG", "color": True}},
                "fieldMask": {"paths": ["log.level"]},
            }
        },
    ),
    Call("get_MasterLogs", {"limit": 3}),
    Call(
        "put_SetClusterMessage", {"body": {"startTime": "2030-01-01T00:00:00Z", "message": "busy", "duration": "24h"}}
    ),
    Call("get_GetClusterMessage"),
    Call("delete_DeleteClusterMessage"),
    Call("get_GetAgents"),
    Call("get_GetAgent", {"agentId": "a"}),
    Call("post_DisableAgent", {"agentId": "b", "body": {"agentId": "b", "drain": True}}),
    Call("post_EnableAgent", {"agentId": "b"}),
    Call("get_GetSlots", {"agentId": "a"}),
    Call("get_GetSlot", _SLOT),
    Call(
        "post_DisableSlot",
        {**_SLOT, "body": {"agentId": "a", "slotId": "000", "drain": False}},
        refused="slots are not enabled or disabled one by one",
        because="slots go out of service with their node",
    ),
    Call(
        "post_EnableSlot",
        _SLOT,
        refused="slots are not enabled or disabled one by one",
        because="slots come into service with their node",
    ),
    Call("get_GetResourcePools"),
    Call(
        "get_ResourceAllocationRaw",
        {"timestampAfter": "2030-01-01T00:00:00Z", "timestampBefore": "2030-01-02T00:00:00Z"},
    ),
    Call(
        "get_ResourceAllocationAggregated",
        {
            "startDate": "2030-01-01",
            "endDate": "2030-01-02",
            "period": "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY",
        },
    ),
)
