"""Records from Prometheus what the panels of the dashboard of pools show, for the picture of it in the documents.

``python -m deploy.documentation.dashboard_recording http://127.0.0.1:9090 20 > docs/pictures/pools.json`` takes the
last 20 minutes. Series that were 0 all the time are left out: they would be lines on the axis.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

ROOT: Final = Path(__file__).resolve().parents[2]
DASHBOARD: Final = ROOT / "deploy" / "helm" / "files" / "observability" / "dashboards" / "pools.json"
STEP_S: Final = 15
PANELS: Final = 8
"""The first of the dashboard, which fit into a picture."""
_VARIABLES: Final = {"$pool": ".*", "$__rate_interval": "1m"}
_LABEL: Final = re.compile(r"\{\{(\w+)\}\}")


def panels() -> list[dict[str, Any]]:
    """The panels that are recorded and drawn."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found[:PANELS]


def record(prometheus: str, *, begin: int, end: int) -> dict[str, Any]:
    """Title of each panel -> legend of each series -> values, one every ``STEP_S``; None where there was none."""
    times = range(begin, end + 1, STEP_S)
    recorded = {panel["title"]: dict(_series(prometheus, panel, times)) for panel in panels()}
    return {"begin": begin, "step": STEP_S, "panels": recorded}


def _series(prometheus: str, panel: dict[str, Any], times: range) -> Iterator[tuple[str, list[float | None]]]:
    for target in panel["targets"]:
        expression = target["expr"]
        for variable, value in _VARIABLES.items():
            expression = expression.replace(variable, value)
        query = urlencode({"query": expression, "start": times[0], "end": times[-1], "step": STEP_S})
        with urlopen(f"{prometheus}/api/v1/query_range?{query}") as response:  # noqa: S310  # whoever records names it
            found = json.load(response)["data"]["result"]
        for one in found:
            value_at = {int(at): round(float(value), 4) for at, value in one["values"]}
            if any(value_at.values()):
                legend = _legend(target["legendFormat"], one["metric"])
                yield legend, [value_at.get(at) for at in times]


def _legend(template: str, labels: Mapping[str, str]) -> str:
    return _LABEL.sub(lambda found: labels.get(found[1], ""), template)


def main() -> None:
    prometheus, minutes = sys.argv[1:]
    end = int(time.time()) // 60 * 60
    print(json.dumps(record(prometheus, begin=end - int(minutes) * 60, end=end)))


if __name__ == "__main__":
    main()
