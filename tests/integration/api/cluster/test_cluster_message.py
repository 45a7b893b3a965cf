"""Messages of administrators to everybody, as the unmodified client sets, shows and clears them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.det import Det

PATH = "/api/v1/master/cluster_message"


def shown(det: Det) -> Any:
    """What everybody is shown."""
    return det("master", "info", "--json").json()["clusterMessage"]


def in_hours(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_a_message_is_set_shown_and_cleared(det: Det) -> None:
    assert shown(det) is None
    assert det("master", "cluster-message", "get", "--json").json() == {"clusterMessage": None}
    det("master", "cluster-message", "set", "-m", "down at noon")
    assert shown(det)["message"] == "down at noon"
    assert shown(det)["endTime"] is None
    det("master", "cluster-message", "set", "-m", "up again", "--duration", "1h30m")
    message = det("master", "cluster-message", "get", "--json").json()["clusterMessage"]
    assert message["message"] == "up again", "the newest is the only one"
    start, end = (datetime.fromisoformat(message[key]) for key in ("startTime", "endTime"))
    assert end - start == timedelta(minutes=90)
    assert "up again" in det("master", "cluster-message", "get").out
    det("master", "cluster-message", "clear")
    det("master", "cluster-message", "clear")
    assert shown(det) is None


def test_one_that_begins_later_is_seen_by_administrators_alone(det: Det) -> None:
    start, end = in_hours(1), in_hours(2)
    det("master", "cluster-message", "set", "-m", "soon", "--start", start, "--end", end)
    assert shown(det) is None
    message = det("master", "cluster-message", "get", "--json").json()["clusterMessage"]
    for key, given in (("startTime", start), ("endTime", end)):
        assert datetime.fromisoformat(message[key]) == datetime.fromisoformat(given), "to the microsecond"
    det("master", "cluster-message", "clear")


@pytest.mark.parametrize(("duration", "hours"), [("1w", 168), ("2d", 48), ("1w1d12h", 204), ("90m", 1.5)])
def test_weeks_and_days_are_understood(admin: httpx.Client, duration: str, hours: float) -> None:
    start = "2100-01-01T00:00:00Z"
    assert admin.put(PATH, json={"message": "m", "startTime": start, "duration": duration}).status_code == 200
    message = admin.get(PATH).json()["clusterMessage"]
    expected = datetime.fromisoformat(start) + timedelta(hours=hours)
    assert datetime.fromisoformat(message["endTime"]) == expected
    assert admin.delete(PATH).json() == {}


def test_what_is_wrong_is_refused_and_changes_nothing(admin: httpx.Client) -> None:
    start = "2100-01-01T00:00:00Z"
    assert admin.put(PATH, json={"message": "stays", "startTime": start}).status_code == 200
    refused: list[tuple[dict[str, Any], str]] = [
        ({"message": ""}, "message: must be more"),
        ({"message": "m" * 251}, "message: must not be longer than 250"),
        ({"message": "m", "duration": "soon"}, "duration: must be something like"),
        ({"message": "m", "duration": "999999w"}, "duration: leads beyond"),
        ({"message": "m", "duration": "-1h"}, "endTime: must be after startTime"),
        ({"message": "m", "startTime": start, "endTime": start}, "endTime: must be after startTime"),
        ({"message": "m", "startTime": "2000-01-01T00:00:00Z", "duration": "1h"}, "endTime: must be in the future"),
        ({"message": "m", "endTime": start, "duration": "1h"}, "only one of them"),
        ({"message": "m", "startTime": "yesterday"}, "startTime"),
    ]
    for body, says in refused:
        reply = admin.put(PATH, json=body)
        assert (reply.status_code, says in reply.json()["error"]["error"]) == (400, True), (body, reply.text)
    assert admin.get(PATH).json()["clusterMessage"]["message"] == "stays"
    admin.delete(PATH)


def test_it_is_for_administrators(user: httpx.Client, det: Det, tmp_path: Path) -> None:
    for method in ("GET", "PUT", "DELETE"):
        assert user.request(method, PATH, json={"message": "m"}).status_code == 403
    stranger = replace(det, home=tmp_path / "nobody", env={"DET_USER": "nobody", "DET_PASS": "wrong"})
    for arguments in (("get",), ("clear",), ("set", "-m", "hello")):
        ended = stranger.fails("master", "cluster-message", *arguments)
        assert "Traceback" not in ended.err, str(ended)
