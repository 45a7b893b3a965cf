"""Says what it sees of the machine; two of them wait for each other, so that they look at the same time."""

import os
import time
from pathlib import Path

import determined as det

ME = Path("/run/determined/mine")
MEETING = Path("/determined_shared_fs/meeting")

trial = det.get_cluster_info().trial.trial_id
ME.write_text(str(trial))
Path("/tmp/mine").write_text(str(trial))
MEETING.mkdir(exist_ok=True)
(MEETING / str(trial)).touch()
deadline = time.monotonic() + 60
while len(list(MEETING.iterdir())) < 2:
    assert time.monotonic() < deadline, "the other did not come"
    time.sleep(0.05)
print(f"trial {trial} reads {ME.read_text()} and {Path('/tmp/mine').read_text()}")
print(f"in {os.getcwd()} with", *sorted(os.listdir("/run/determined")))
print(f"task type {os.environ['DET_TASK_TYPE']}, slots {os.environ['DET_SLOT_IDS']}")
