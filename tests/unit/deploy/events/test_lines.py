"""What ``resolute events`` prints of an event."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from deploy import cli
from deploy.command_line import past_moment
from deploy.events.command import read_event
from deploy.events.lines import SeenEvent, as_json, as_line
from libs.bus import Message
from libs.bus.headers import event_headers
from libs.events.changes import ExperimentChanged

AT = datetime(2026, 1, 31, 12, 0, 5, 700_000, tzinfo=UTC)
CHANGED = ExperimentChanged(experiment_id=7, what="state", state="PAUSED", name="my net", owner="ann", progress=0.5)


def seen(data: bytes = msgspec.json.encode(CHANGED)) -> SeenEvent:
    headers = event_headers(
        id="1", type="resolute.v1.experiment.state", source="/resolute/c", subject="7", time=AT, traceparent=None
    )
    message = Message(
        subject="resolute.v1.experiment.7.state", data=data, headers=headers, sequence=1, delivered=1, stored_at=AT
    )
    event = read_event(message)
    assert event is not None
    return msgspec.structs.replace(event, at=event.at.astimezone(UTC))


def test_a_line_says_when_what_and_how_it_is_now() -> None:
    said = '2026-01-31 12:00:05  experiment 7  state  state=PAUSED name="my net" owner=ann progress=0.5'
    assert as_line(seen(), coloured=False) == said


def test_a_line_fits_the_terminal() -> None:
    cut = as_line(seen(), coloured=False, width=50)
    assert cut == "2026-01-31 12:00:05  experiment 7  state  state=P…"
    coloured = as_line(seen(), coloured=True, width=50)
    assert coloured.replace("\x1b[2m", "").replace("\x1b[1m", "").replace("\x1b[0m", "") == cut


def test_what_launchers_see_is_short() -> None:
    pods = [{"name": "a", "state": "RUNNING"}, {"name": "b", "state": "PULLING"}]
    event = msgspec.structs.replace(
        seen(), type="allocation.observed", subject="x.1", data={"pods": pods, "revision": 3, "gone": False}
    )
    assert as_line(event, coloured=False) == "2026-01-31 12:00:05  allocation x.1  observed  pods=RUNNING,PULLING"


def test_nothing_in_a_line_can_be_a_second_line_or_move_the_cursor() -> None:
    data = {**msgspec.to_builtins(CHANGED), "name": "a\n\x1b[2J"}
    line = as_line(seen(json.dumps(data).encode()), coloured=False)
    assert line.isprintable()


def test_programs_get_a_cloud_event() -> None:
    event = json.loads(as_json(seen()))
    assert event["type"] == "resolute.v1.experiment.state"
    assert (event["specversion"], event["subject"], event["time"]) == ("1.0", "7", "2026-01-31T12:00:05.700000Z")
    assert event["data"]["state"] == "PAUSED"


def test_since_takes_what_people_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert timedelta(minutes=9) < datetime.now(UTC) - past_moment("10m") < timedelta(minutes=11)
    assert past_moment("99999d") < past_moment("7d") < past_moment("2h")
    assert past_moment("2026-01-31T12:00:05.7Z") == AT
    assert past_moment("2026-01-31 12:00") == datetime(2026, 1, 31, 12).astimezone()
    with pytest.raises(SystemExit):
        cli.main(["events", "--since", "yesterday"])
    assert "as in 10m, 2h or 7d, or a time" in capsys.readouterr().err
