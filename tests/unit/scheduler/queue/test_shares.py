"""Paths of the shares that allocations count to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from libs.cluster.config import ShareKind
from services.scheduler.queue.shares import Shares

ROW = {"job_id": "j", "owner_id": 2, "workspace_id": 5, "weight": 3.0}
ALONE = {**ROW, "owner_id": 9, "weight": None}


@pytest.mark.parametrize(
    ("share_by", "of_member", "of_who_is_alone"),
    [
        ((), "j", "j"),
        (("user",), "user 2/j", "user 9/j"),
        (("group",), "group 7/j", "user 9/j"),
        (("group", "user"), "group 7/user 2/j", "user 9/user 9/j"),
        (("workspace", "group", "user"), "workspace 5/group 7/user 2/j", "workspace 5/user 9/user 9/j"),
        (("group", "workspace"), "group 7/workspace 5/j", "user 9/workspace 5/j"),
    ],
)
def test_paths(share_by: Sequence[ShareKind], of_member: str, of_who_is_alone: str) -> None:
    shares = Shares(share_by, groups={2: 7})
    assert (shares.path_of(ROW), shares.path_of(ALONE)) == (of_member, of_who_is_alone)
    assert shares.weights_of([ROW, ALONE]) == {of_member: 3.0}


def test_weights_of_the_shares_that_a_path_leads_through() -> None:
    weights = {"workspace 5": 4.0, "group 7": 0.5, "user 9": 2.0, "user 1": 8.0}
    shares = Shares(("workspace", "group", "user"), groups={2: 7}, weights=weights)
    assert shares.weights_of([ROW, ALONE]) == {
        "workspace 5": 4.0,
        "workspace 5/group 7": 0.5,
        "workspace 5/group 7/user 2/j": 3.0,
        "workspace 5/user 9": 2.0,
        "workspace 5/user 9/user 9": 2.0,
    }
    assert Shares((), weights=weights).weights_of([ROW]) == {"j": 3.0}
