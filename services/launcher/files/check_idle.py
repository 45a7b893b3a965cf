"""Tells the master every 30 s whether somebody uses the notebook.

Source: docs/reference/harness-protocol.md 8.2. Needs ``determined`` in the Python it runs with.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Python 3.8 cannot write these types down while it runs
    from collections.abc import Mapping, Sequence
    from typing import Any

    State = Mapping[str, Sequence[Mapping[str, Any]]]
    """What Jupyter lists: ``kernels``, ``terminals`` and ``sessions``."""

CHECK_S = 30.0
CERTIFICATE = "/run/determined/jupyter/jupyterCert.pem"


def is_idle(kind: str, state: State, before: str | None) -> tuple[bool, str | None]:
    """Whether the notebook is idle by the rule ``kind``; and its latest activity, which is ``before`` the next time."""
    kernels = state["kernels"]
    if kind == "kernel_connections":
        return all(kernel.get("connections", 0) == 0 for kernel in kernels), None
    if kind == "activity":
        times = [str(item["last_activity"]) for item in (*kernels, *state["terminals"]) if "last_activity" in item]
        latest = max(times, default=None)
        busy = any(kernel.get("execution_state") == "busy" for kernel in kernels)
        return not busy and latest == before, latest
    return not (kernels or state["terminals"] or state["sessions"]), None


def read_state(base_url: str, token: str) -> State:
    """Ask Jupyter; raises OSError or ValueError when it does not answer, or not in JSON."""
    # The certificate is this task's own, and the connection does not leave the machine.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    # Whatever proxy the task has for the rest of the world.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    state = {}
    for what in ("kernels", "terminals", "sessions"):
        request = urllib.request.Request(  # noqa: S310  the scheme is ours
            f"{base_url}/api/{what}", headers={"Authorization": f"token {token}"}
        )
        with opener.open(request, timeout=10) as answer:
            state[what] = json.load(answer)
    return state


def look(kind: str, base_url: str, token: str, before: str | None) -> tuple[bool, str | None]:
    """What ``is_idle`` says; a Jupyter that does not answer may be busy, and counts as that."""
    try:
        return is_idle(kind, read_state(base_url, token), before)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.stderr.write(f"WARNING: cannot ask Jupyter whether it is idle: {error!r}\n")
        return False, before


def wait_for_port(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(1)


def main() -> None:
    from determined.common.api import authentication, certs  # noqa: PLC0415  the rest is tested without the package

    port = int(os.environ["NOTEBOOK_PORT"])
    task = os.environ["DET_TASK_ID"]
    kind = os.environ.get("NOTEBOOK_IDLE_TYPE", "kernels_or_terminals")
    scheme = "https" if os.path.exists(CERTIFICATE) else "http"
    base_url = f"{scheme}://127.0.0.1:{port}/proxy/{task}"
    wait_for_port(port)
    master = os.environ["DET_MASTER"]
    session = authentication.login_from_task(master, cert=certs.default_load(master))
    before: str | None = None
    while True:
        idle, before = look(kind, base_url, os.environ["DET_NOTEBOOK_TOKEN"], before)
        try:
            session.put(f"/api/v1/notebooks/{task}/report_idle", json={"idle": idle})
        except Exception as error:  # noqa: BLE001  a report that is missing must not end the reports
            sys.stderr.write(f"WARNING: cannot report whether the notebook is idle: {error}\n")
        time.sleep(CHECK_S)


if __name__ == "__main__":
    main()
