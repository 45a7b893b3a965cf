from __future__ import annotations

from typing import NamedTuple

import pytest

from services.api.cluster_admin.namespace_names import is_namespace_name, own_namespace_name


class Case(NamedTuple):
    workspace: str
    workspace_id: int
    installation: str
    cluster_id: str
    name: str


CASES = [
    Case("My Team_1", 7, "determined", "ab12-rest", "myteam1-determined-ab12-7"),
    Case("Team A!", 12, "det", "9f3c", "teama-det-9f3c-12"),
    Case("a-b", 1, "det", "9f3c", "ab-det-9f3c-1"),
    Case("研究", 3, "det", "9f3c", "null-det-9f3c-3"),
    Case("lab", 3, "", "9f3c", "lab-9f3c-3"),
    Case("lab", 1234567, "det", "9f3c", "lab-det-9f3c-123456"),
    Case("x" * 80, 123456, "y" * 18 + "-z", "9f3c", f"{'x' * 31}-{'y' * 18}-9f3c-123456"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_own_namespace(case: Case) -> None:
    name = own_namespace_name(
        workspace=case.workspace,
        workspace_id=case.workspace_id,
        installation=case.installation,
        cluster_id=case.cluster_id,
    )
    assert name == case.name
    assert is_namespace_name(name)


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        ("a", True),
        ("team-1", True),
        ("x" * 63, True),
        ("x" * 64, False),
        ("", False),
        ("-a", False),
        ("a-", False),
        ("a/b", False),
        ("..", False),
        ("A", False),
        ("a\n", False),
    ],
)
def test_names_of_namespaces(name: str, possible: bool) -> None:
    assert is_namespace_name(name) is possible
