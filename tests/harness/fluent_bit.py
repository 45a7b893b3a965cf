"""fluent-bit beside a task, as the kubelet runs it: a process with the launcher's own configuration.

The one on the PATH if there is one, else a stand-in that behaves as it was measured to.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.launcher.backends.kubernetes.manifests.files.volumes import FLUENT_AT
from services.launcher.backends.kubernetes.manifests.fluent_bit import fluent_config
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits
from services.launcher.backends.kubernetes.settings import ShipperSettings
from services.launcher.container.paths import LOG_DIR
from services.launcher.container.settings import TaskSettings
from tests.harness.waiting import PATIENCE_S

FLUENT_BIT = shutil.which("fluent-bit")
STAND_IN = (sys.executable, str(Path(__file__).with_name("fluent_bit_stand_in.py")))
COMMAND = STAND_IN if FLUENT_BIT is None else (FLUENT_BIT,)


def major_version() -> int:
    """Of the fluent-bit on the PATH; 0 when there is none."""
    if FLUENT_BIT is None:
        return 0
    told = subprocess.run([FLUENT_BIT, "--version"], capture_output=True, text=True, check=True).stdout
    return int(told.removeprefix("Fluent Bit v").split(".")[0])


class Sidecar:
    def __init__(
        self,
        logs: Path,
        *,
        token: str,
        allocation: str,
        pod: str,
        tasks: TaskSettings,
        master_cert: Path | None = None,
        shipper: ShipperSettings | None = None,
    ) -> None:
        """``logs`` is the directory that it shares with the task; ``tasks`` says where the intake is."""
        traits = PoolTraits(
            pool="default",
            cluster_id="c",
            namespace="n",
            tasks=tasks,
            shipper=shipper or ShipperSettings(),
            master_cert=None if master_cert is None else master_cert.read_bytes(),
        )
        text = fluent_config(traits, pod_grace_s=60).replace(LOG_DIR, str(logs))
        if master_cert is not None:
            text = text.replace(f"{FLUENT_AT}-ca/master.crt", str(master_cert))
        self._config = logs.parent / "fluent-bit.yaml"
        self._config.write_text(text)
        self.output = logs.parent / "fluent-bit.out"
        self._environment = {
            "DET_LOG_TOKEN": token,
            "DET_ALLOCATION_ID": allocation,
            "POD_NAME": pod,
            "NODE_NAME": "node-1",
        }

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The process; killed at the end of the block if it still runs."""
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [*COMMAND, "-c", str(self._config)], env=self._environment, stdout=output, stderr=output
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def end(process: subprocess.Popen[bytes]) -> int:
    """What the kubelet does once the containers of the task have ended; returns the exit code."""
    process.send_signal(signal.SIGTERM)
    return process.wait(PATIENCE_S)
