"""What clients are told of this end of SCIM."""

from __future__ import annotations

from services.api.scim import discovery
from tests.scenarios.scim_requests import GROUP, USER

BASE = "https://here/scim/v2"


def test_schemas_have_what_is_kept_and_nothing_else() -> None:
    user, group = discovery.schemas(base=BASE)
    assert [(each["id"], each["name"]) for each in (user, group)] == [(USER, "User"), (GROUP, "Group")]
    assert user["meta"] == {"resourceType": "Schema", "location": f"{BASE}/Schemas/{USER}"}
    assert [each["name"] for each in user["attributes"]] == ["userName", "name", "displayName", "active", "emails"]
    assert [each["name"] for each in group["attributes"]] == ["displayName", "members"]
    assert [each["name"] for each in group["attributes"][1]["subAttributes"]] == ["value", "display", "$ref"]
    assert group["attributes"][1]["subAttributes"][2]["referenceTypes"] == ["User"]
    required = [each["name"] for each in (*user["attributes"], *group["attributes"]) if each["required"]]
    assert required == ["userName", "displayName"]


def test_resource_types_lead_to_their_schemas() -> None:
    found = [(each["id"], each["endpoint"], each["schema"]) for each in discovery.resource_types(base=BASE)]
    assert found == [("User", "/Users", USER), ("Group", "/Groups", GROUP)]
