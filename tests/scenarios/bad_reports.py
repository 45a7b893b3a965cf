"""Reports of training code that are odd or broken: what is sent in which place, and what is said of it.

Bodies are JSON as it goes over the wire, because most of what is broken no encoder would write. ``TRIAL``, ``STEP`` and
the like stand for what the test has; ``VALUE`` for what is put there. A refusal is 400 with a text that contains the
given words; None is taken with 200. Source: docs/reference/experiments.md 9.1, docs/reference/platform.md 1.2 and 1.3,
docs/reference/harness-protocol.md 11, 12.4 and 16.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Place(NamedTuple):
    """``usual`` is what belongs there; ``odd`` what else may come, and what is said to it."""

    method: str
    path: str
    body: str
    usual: bytes
    odd: dict[bytes, str | None]


_LONG: Final = b'"' + b"x" * 100_000 + b'"'
_NO_JSON: Final = "the request body is not JSON"
_NUL: Final = "without NUL characters"
_DEEP: Final = "nested deeper than 100 levels"

BROKEN: Final[dict[bytes, str | None]] = {
    b'"\xff\xfe"': _NO_JSON,
    b'"\xed\xa0\x80"': _NO_JSON,  # a surrogate, encoded as if it were a character
    rb'"\ud800"': _NO_JSON,
    rb'"\udc00\ud800"': _NO_JSON,
    rb'"\x00"': _NO_JSON,
    b'"\x00"': _NO_JSON,
    b"NaN": _NO_JSON,
    b"-Infinity": _NO_JSON,
    b"Infinity": _NO_JSON,
    b"01": _NO_JSON,
    b"0x10": _NO_JSON,
    b"'text'": _NO_JSON,
    b"": _NO_JSON,
    b'"no end': _NO_JSON,
    b"1}, {": _NO_JSON,
    b"1e999": "number out of range",
    b"[" * 10_000 + b"]" * 10_000: "nested deeper than",
}
"""Nothing of this is a value anywhere; each endpoint gets it in the first of its places."""

VALUES: Final[dict[bytes, str | None]] = {
    rb'"a\u0000b"': _NUL,
    rb'{"a\u0000b": 1}': _NUL,
    rb'[{"deeper": ["\u0000"]}]': _NUL,
    b"[" * 150 + b"1" + b"]" * 150: _DEEP,
    b'{"a":' * 150 + b"1" + b"}" * 150: _DEEP,
    b"1" + b"0" * 400: "too large",
    b"-1" + b"0" * 400: "too large",
    b"9223372036854775807": None,
    b"9223372036854775808": None,
    b"-18446744073709551617": None,
    b"1" + b"0" * 30: None,
    b"1e308": None,
    b"-1e-320": None,
    b'"NaN"': None,
    b'"Infinity"': None,
    b'"-Infinity"': None,
    b'"nan"': None,
    rb'"\ud83d\udca5"': None,
    b'"text"': None,
    b'""': None,
    _LONG: None,
    b"null": None,
    b"true": None,
    b"[]": None,
    b"{}": None,
    b'[1, "a", null, {"b": []}]': None,
    b'{"": {"": [[]]}}': None,
    b"[" * 50 + b"1" + b"]" * 50: None,
}
"""Where anything may be that JSON has a form for."""

EPOCHS: Final[dict[bytes, str | None]] = {
    b'"1"': "cannot add metric with non numeric 'epoch' value got 1",
    b'"NaN"': "cannot add metric with non numeric 'epoch' value got NaN",
    b"true": "cannot add metric with non numeric 'epoch' value got True",
    b"[1]": "cannot add metric with non numeric 'epoch' value got [1]",
    b"{}": "cannot add metric with non numeric 'epoch' value got {}",
    b"null": None,
    b"1" + b"0" * 30: None,
    b"-1.5": None,
}

NAMES: Final[dict[bytes, str | None]] = {
    rb'"a\u0000b"': _NUL,
    b"1": _NO_JSON,
    b"null": _NO_JSON,
    b"{}": _NO_JSON,
    b'""': None,
    b'" "': None,
    b'"a.b..c"': None,
    rb'"\ud83d\udca5 \"quoted\" \\ /"': None,
    rb'"%00\\u0000\u0007"': None,
    b'"__proto__"': None,
    b'"\'; DROP TABLE metrics; --"': None,
    _LONG: None,
}

GROUPS: Final[dict[bytes, str | None]] = {
    rb'"a\u0000"': _NUL,
    b'""': "metric group cannot be empty",
    b"null": "metric group cannot be empty",
    b'"a.b"': "metric group cannot contain '.'",
    b'"' + b"x" * 256 + b'"': "metric group cannot be longer than 255 characters",
    _LONG: "metric group cannot be longer than 255 characters",
    b'"avg_metrics"': "the summary of a trial uses that name",
    b"1": "group: expected `str`, got `int`",
    b"true": "group: expected `str`, got `bool`",
    b"[]": "group: expected `str`, got `array`",
    b"{}": "group: expected `str`, got `object`",
    b'"' + "ü".encode() * 255 + b'"': None,
    rb'"\ud83d\udca5"': None,
    b'" "': None,
}

OBJECTS: Final[dict[bytes, str | None]] = {
    b"1": "expected `object",
    b'"text"': "expected `object",
    b"true": "expected `object",
    b"[1]": "expected `object",
}

LISTS: Final[dict[bytes, str | None]] = {
    b"1": "expected `array",
    b'"text"': "expected `array",
    b"{}": "expected `array",
    b"[1]": "expected `object",
    b"[null]": "expected `object",
    b'[{"loss": [' + b"[" * 150 + b"]" * 150 + b"]}]": _DEEP,
    rb'[{"a\u0000": 1}]': _NUL,
    b"[]": None,
    b"null": None,
    b"[{}, {}]": None,
    b'[{"loss": 1' + b"0" * 30 + b"}]": None,
}

INT32S: Final[dict[bytes, str | None]] = {
    b"2147483648": "integer",
    b"-2147483649": "integer",
    b"9223372036854775808": "integer",
    b"1" + b"0" * 400: "",
    b"1.5": "expected `int",
    b'"word"': "expected `int",
    b'""': "expected `int",
    b"true": "expected `int",
    b"[]": "expected `int",
    b"{}": "expected `int",
}

STEPS: Final[dict[bytes, str | None]] = INT32S | {b"2147483647": None, b"-2147483648": None}

RUNS: Final[dict[bytes, str | None]] = INT32S | {
    b"0": "invalid run id, 0 (reported) != 1 (expected): invalid arguments",
    b"2": "invalid run id, 2 (reported) != 1 (expected): invalid arguments",
    b"-1": "invalid run id, -1 (reported) != 1 (expected): invalid arguments",
    b"null": "invalid run id, 0 (reported) != 1 (expected): invalid arguments",
    b'"1"': None,
    b"1.0": None,
}

TIMES: Final[dict[bytes, str | None]] = {
    b'"yesterday"': "reportTime",
    b'""': "reportTime",
    b'"2030-01-01"': "reportTime",
    b'"2030-01-01T00:00:00"': "reportTime",
    b'"2030-13-01T00:00:00Z"': "reportTime",
    b'"99999-01-01T00:00:00Z"': "reportTime",
    b'"0001-01-01T00:00:00+14:00"': "out of range",
    b'"9999-12-31T23:59:59-14:00"': "out of range",
    b"true": "reportTime",
    b"{}": "reportTime",
    b"null": None,
    b'"2030-01-01t00:00:00.123456z"': None,
}

FRACTIONS: Final[dict[bytes, str | None]] = {
    b'"half"': "progress: expected `float`",
    b'""': "progress: expected `float`",
    b"true": "progress: expected `float`",
    b"[]": "progress: expected `float`",
    b"{}": "progress: expected `float`",
    b"1" + b"0" * 400: "",
    b'"1e999"': "too large",
    # A search does without what is no fraction.
    b'"NaN"': None,
    b'"Nan"': None,
    b'"Infinity"': None,
    b"-1": None,
    b"1e308": None,
    b'"0.25"': None,
    b"null": None,
}

FRACTIONS_ELSEWHERE: Final[dict[bytes, str | None]] = {
    b"-0.5": "invalid progress value: -0.5 should be between 0 and 1",
    b"1.5": "invalid progress value: 1.5 should be between 0 and 1",
    b'"Infinity"': "invalid progress value: inf should be between 0 and 1",
    b'"NaN"': None,
}

SIZES: Final[dict[bytes, str | None]] = {
    b"-1": "the size of a file cannot be negative",
    b"9223372036854775808": "64-bit integer",
    b'"9223372036854775808"': "64-bit integer",
    b"1" + b"0" * 400: "",
    b"1.5": "64-bit integer",
    b'"word"': "64-bit integer",
    b"true": "64-bit integer",
    b"[]": "64-bit integer",
    b'"7"': None,
    b"1e3": None,
}

UUIDS: Final[dict[bytes, str | None]] = {
    b'""': "uuid",
    b"null": "uuid",
    b'"word"': "uuid",
    b'"../../etc"': "uuid",
    b"7": "uuid: expected `str`",
    rb'"a\u0000"': _NUL,
    _LONG: "uuid",
}

TEXTS: Final[dict[bytes, str | None]] = {
    rb'"a\u0000"': _NUL,
    b"7": "expected `str`",
    b"true": "expected `str`",
    b"[]": "expected `str`",
}

STORED_TEXTS: Final[dict[bytes, str | None]] = TEXTS | {b'""': None, rb'"\ud83d\udca5"': None, _LONG: None}

READINGS: Final[dict[bytes, str | None]] = {
    b'"word"': "expected `float`",
    b"true": "expected `float`",
    b"null": "expected `float`",
    b"[]": "expected `float`",
    b"1" + b"0" * 400: "",
    b"": "values, batches and timestamps must be equally long, got 0 values, 1 batches and 1 timestamps",
    b"1, 2": "values, batches and timestamps must be equally long, got 2 values, 1 batches and 1 timestamps",
    b'"NaN"': None,
    b'"-Infinity"': None,
    b"1e308": None,
}

_TRIAL: Final = "/api/v1/trials/TRIAL"
_REPORT: Final = '{"group": "training", "metrics": {"trialRunId": 1, "stepsCompleted": STEP, "metrics": %s}}'
_PLAIN: Final = '{"trialRunId": 1, "stepsCompleted": STEP, "metrics": {"avgMetrics": %s}}'
_CHECKPOINT: Final = (
    '{"uuid": "UUID", "taskId": "TASK", "state": "STATE_COMPLETED", "resources": {"weights": "5"}, '
    '"metadata": {"steps_completed": STEP, "more": VALUE}}'
)
_SERIES: Final = (
    '{"batches": [{"values": [VALUE], "batches": [1], "timestamps": ["2030-01-01T00:00:00.STEPZ"], '
    '"labels": {"trialId": TRIAL, "name": "cpu_util_simple", "agentId": "a"}}]}'
)

PLACES: Final = (
    Place("POST", f"{_TRIAL}/metrics", _REPORT % '{"avgMetrics": {"loss": 1, "odd": VALUE}}', b"1", VALUES),
    Place("POST", f"{_TRIAL}/metrics", _REPORT % '{"avgMetrics": {"loss": 1, "epoch": VALUE}}', b"1", EPOCHS),
    Place("POST", f"{_TRIAL}/metrics", _REPORT % '{"avgMetrics": {"loss": 1, VALUE: 1}}', b'"acc"', NAMES),
    Place("POST", f"{_TRIAL}/metrics", _REPORT % '{"avgMetrics": VALUE}', b'{"loss": 1}', OBJECTS),
    Place("POST", f"{_TRIAL}/metrics", _REPORT % '{"avgMetrics": {}, "batchMetrics": VALUE}', b'[{"loss": 1}]', LISTS),
    Place("POST", f"{_TRIAL}/metrics", _REPORT % "VALUE", b'{"avgMetrics": {}}', OBJECTS),
    Place(
        "POST",
        f"{_TRIAL}/metrics",
        (_REPORT % '{"avgMetrics": {"loss": 1}}').replace('"training"', "VALUE"),
        b'"mine"',
        GROUPS,
    ),
    Place(
        "POST",
        f"{_TRIAL}/metrics",
        (_REPORT % '{"avgMetrics": {"loss": 1}}').replace(": 1,", ": VALUE,"),
        b"1",
        RUNS,
    ),
    Place("POST", f"{_TRIAL}/metrics", _REPORT.replace("STEP", "VALUE") % "{}", b"STEP", STEPS),
    Place("POST", f"{_TRIAL}/metrics", '{"group": "training", "metrics": VALUE}', b'{"trialRunId": 1}', OBJECTS),
    Place(
        "POST",
        f"{_TRIAL}/metrics",
        (_REPORT % '{"avgMetrics": {"loss": 1}}').replace("STEP,", 'STEP, "reportTime": VALUE,'),
        b'"2030-01-01T00:00:00Z"',
        TIMES,
    ),
    Place(
        "POST",
        f"{_TRIAL}/metrics",
        (_REPORT % '{"avgMetrics": {"node-1": {"gpu-1": {"gpu_util": VALUE}}}}').replace("training", "gpu"),
        b"STEP",
        VALUES,
    ),
    Place(
        "POST",
        f"{_TRIAL}/metrics",
        (_REPORT % '{"avgMetrics": {"loss": VALUE}}').replace("training", "validation"),
        b"1",
        VALUES,
    ),
    Place("POST", f"{_TRIAL}/training_metrics", _PLAIN % '{"loss": VALUE}', b"1", VALUES),
    Place("POST", f"{_TRIAL}/validation_metrics", _PLAIN % '{"loss": VALUE}', b"1", VALUES),
    Place("POST", f"{_TRIAL}/validation_metrics", _PLAIN % '{"loss": 1, VALUE: 1}', b'"acc"', NAMES),
    Place("POST", f"{_TRIAL}/validation_metrics", _PLAIN % "VALUE", b'{"loss": 1}', OBJECTS),
    Place("POST", f"{_TRIAL}/progress", '{"progress": VALUE, "isRaw": true}', b"0.5", FRACTIONS),
    Place("POST", "/api/v1/trials/ELSEWHERE/progress", '{"progress": VALUE}', b"0.5", FRACTIONS_ELSEWHERE),
    Place("POST", f"{_TRIAL}/runner/metadata", '{"state": VALUE}', b'"training"', STORED_TEXTS),
    Place("POST", "/api/v1/trials/profiler/metrics", _SERIES, b"1", READINGS),
    Place(
        "POST",
        "/api/v1/trials/profiler/metrics",
        _SERIES.replace("VALUE", "1").replace("TRIAL", "VALUE"),
        b"TRIAL",
        INT32S,
    ),
    Place(
        "POST",
        "/api/v1/trials/profiler/metrics",
        _SERIES.replace("VALUE", "1").replace('"cpu_util_simple"', "VALUE"),
        b'"memory_free"',
        TEXTS | {b'""': "labels.name: every batch must name its metric", _LONG: None},
    ),
    Place("POST", "/api/v1/checkpoints", _CHECKPOINT, b"1", VALUES),
    Place("POST", "/api/v1/checkpoints", _CHECKPOINT.replace('"more": VALUE', "VALUE: 1"), b'"more"', NAMES),
    Place(
        "POST",
        "/api/v1/checkpoints",
        _CHECKPOINT.replace("STEP, ", "VALUE, ").replace(": VALUE}", ": 1}"),
        b"STEP",
        VALUES,
    ),
    Place("POST", "/api/v1/checkpoints", _CHECKPOINT.replace("VALUE", "1").replace('"5"', "VALUE"), b'"5"', SIZES),
    Place(
        "POST",
        "/api/v1/checkpoints",
        _CHECKPOINT.replace("VALUE", "1").replace('{"weights": "5"}', "VALUE"),
        b"{}",
        OBJECTS,
    ),
    Place(
        "POST",
        "/api/v1/checkpoints",
        _CHECKPOINT.replace("VALUE", "1").replace('"weights"', "VALUE"),
        b'"weights"',
        NAMES,
    ),
    Place(
        "POST", "/api/v1/checkpoints", _CHECKPOINT.replace("VALUE", "1").replace('"UUID"', "VALUE"), b'"UUID"', UUIDS
    ),
    Place(
        "POST", "/api/v1/checkpoints", _CHECKPOINT.replace("VALUE", "1").replace('"TASK"', "VALUE"), b'"TASK"', TEXTS
    ),
    Place(
        "POST",
        "/api/v1/checkpoints/CHECKPOINT/metadata",
        '{"checkpoint": {"metadata": {"odd": VALUE}}}',
        b"1",
        VALUES,
    ),
    Place(
        "POST",
        "/api/v1/runs/TRIAL/metadata",
        '{"metadata": {"odd": VALUE}}',
        b"1",
        {b'"' + b"x" * 5001 + b'"': "metadata value exceeds"},
    ),
    Place(
        "POST",
        "/api/v1/trials",
        '{"experimentId": OUTSIDE, "unmanaged": true, "hparams": {"lr": VALUE}}',
        b"1",
        VALUES,
    ),
    Place(
        "POST",
        "/api/v1/trials",
        '{"experimentId": OUTSIDE, "unmanaged": true, "hparams": {VALUE: 1}}',
        b'"lr"',
        NAMES,
    ),
    Place("POST", "/api/v1/trials", '{"experimentId": OUTSIDE, "unmanaged": true, "hparams": VALUE}', b"{}", OBJECTS),
    Place("POST", "/api/v1/trials", '{"experimentId": VALUE, "unmanaged": true}', b"OUTSIDE", INT32S),
    Place(
        "PUT",
        "/api/v1/trials",
        '{"createTrialRequest": {"experimentId": OUTSIDE, "unmanaged": true}, "externalTrialId": VALUE}',
        b'"STEP"',
        TEXTS,
    ),
    Place("PATCH", "/api/v1/trials/ELSEWHERE", '{"state": VALUE}', b'"STATE_RUNNING"', {b'"GO"': "state"}),
)

CONTENT_TYPES: Final = (
    "",
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "text/html; charset=iso-8859-1",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "multipart/form-data; boundary=x",
    "application/grpc",
    "application/octet-stream",
    "nonsense",
    "/;;=,",
    "x" * 5000,
)
"""Clients of the reference send none at all: a body is JSON whatever it is called."""

BODIES: Final = {
    b"[]": "expected `object`",
    b'"text"': "expected `object`",
    b"7": "expected `object`",
    b"{": _NO_JSON,
    b"}": _NO_JSON,
    b"not json": _NO_JSON,
    b"{} {}": _NO_JSON,
    b"{'group': 'training'}": _NO_JSON,
    b'{"group": "training",}': _NO_JSON,
    b"\xef\xbb\xbf{}": _NO_JSON,
    '{"group": "training"}'.encode("utf-16"): _NO_JSON,
    b"group=training&metrics=": _NO_JSON,
    b'--x\r\nContent-Disposition: form-data; name="group"\r\n\r\ntraining\r\n--x--': _NO_JSON,
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00C\xbf\xa6\xa3\x02\x00\x00\x00": _NO_JSON,
}
"""Whole bodies, to each of the endpoints."""

GONE: Final = (
    "/api/v1/trials/TRIAL/searcher/operation",
    "/api/v1/trials/TRIAL/searcher/completed_operation",
    "/api/v1/trials/profiler/batches",
)
"""What the harness of 0.38.1 does not call any more is no endpoint: 501."""

READS: Final = (
    _TRIAL,
    f"{_TRIAL}/workloads",
    f"{_TRIAL}/workloads?sortKey=odd&metricType=METRIC_TYPE_TRAINING",
    "/api/v1/trials/metrics/trial_metrics?trialIds=TRIAL",
    "/api/v1/trials/metrics/training_metrics?trialIds=TRIAL",
    "/api/v1/trials/metrics/validation_metrics?trialIds=TRIAL",
    "/api/v1/trials/time-series?trialIds=TRIAL&metricNames=odd&metricNames=loss",
    "/api/v1/projects/1/columns",
    "/api/v1/projects/1/experiments/metric-ranges",
)
"""What shows metrics again."""
