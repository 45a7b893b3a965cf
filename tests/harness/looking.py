"""Reads experiments for tests: over REST, in the shapes of the API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx

from tests.harness.waiting import wait_until

ENDED = {"STATE_COMPLETED", "STATE_CANCELED", "STATE_ERROR"}


class Looking:
    """A view of one system through one connection."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def get(self, path: str, **parameters: Any) -> Any:
        return self._http.get(f"/api/v1{path}", params=parameters).raise_for_status().json()

    def experiment(self, experiment: int) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/experiments/{experiment}")["experiment"]
        return found

    def state(self, experiment: int) -> str:
        return str(self.experiment(experiment)["state"])

    def wait(self, experiment: int, state: str = "STATE_COMPLETED", *, timeout_s: float = 180) -> None:
        """Wait for a state of an experiment, and when that is an end, until its logs are complete.

        AssertionError with the logs when it ends in another one.
        """
        wait_until(lambda: self.state(experiment) in {*ENDED, state}, timeout_s=timeout_s, what=f"{experiment} {state}")
        now = self.state(experiment)
        if now not in ENDED:
            return
        # A follow ends when nothing can come any more.
        said = [line["message"] for trial in self.trials(experiment) for line in self.logs(trial["id"], follow="true")]
        assert now == state, "".join(said)

    def trials(self, experiment: int) -> list[dict[str, Any]]:
        """By id."""
        found = self.get(f"/experiments/{experiment}/trials", limit=1000)["trials"]
        return sorted(found, key=lambda trial: int(trial["id"]))

    def trial(self, experiment: int) -> dict[str, Any]:
        """The only one."""
        trials = self.trials(experiment)
        assert len(trials) == 1
        return trials[0]

    def logs(self, trial: int, **parameters: Any) -> list[dict[str, Any]]:
        return list(self._stream(f"/trials/{trial}/logs", parameters))

    def printed(self, trial: int, **parameters: Any) -> list[str]:
        """What the program wrote, line by line, without line feeds."""
        return [line["log"].removesuffix("\n") for line in self.logs(trial, sources="task", **parameters)]

    def steps(self, trial: int, group: str = "training") -> list[int]:
        """Steps of the reported metrics, in the order of the stream."""
        return [report["totalBatches"] for report in self.reports(trial, group)]

    def reports(self, trial: int, group: str = "training") -> list[dict[str, Any]]:
        pages = self._stream("/trials/metrics/trial_metrics", {"trialIds": trial, "group": group})
        return [report for page in pages for report in page["metrics"]]

    def _stream(self, path: str, parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
        with self._http.stream("GET", f"/api/v1{path}", params=parameters) as response:
            response.raise_for_status()
            for line in response.iter_lines():
                item = json.loads(line)
                if "result" not in item:
                    # As after an answer that breaks off: the status was sent before it was known.
                    raise httpx.RemoteProtocolError(f"the stream ended with {line}")
                yield item["result"]
