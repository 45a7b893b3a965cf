"""``det deploy gke`` of the unmodified client edits a folder with the chart, and installs it without a password."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.harness.det import det_path
from tests.harness.helm import CHART, render
from tests.integration.helm.conftest import BESIDE

EDIT = """
import argparse, sys
from determined.common import yaml
from determined.deploy.gke import cli
# Releases of ruamel.yaml from 0.18 on refuse the name that the client writes with.
yaml.round_trip_dump = yaml.YAML().dump
cli.configure_helm(argparse.Namespace(
    helm_dir=sys.argv[1], det_version=None, gpu_coscheduler=True, preemption=False, gcs_bucket_name="models",
    gpus_per_node=4, multiple_node_pools=True))
"""


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    subprocess.run([det_path().with_name("python"), "-c", EDIT, chart], check=True, timeout=120)
    return chart


def test_the_chart_takes_what_det_deploy_gke_writes(edited: Path) -> None:
    release = render(edited / "values.yaml", *BESIDE, name="determined-gke", chart=edited)
    config = yaml.safe_load(release.secret("determined-master-config", "master.yaml"))
    assert config["resource_manager"]["max_slots_per_pod"] == 4
    assert config["checkpoint_storage"] == {
        "type": "gcs",
        "bucket": "models",
        "save_experiment_best": 0,
        "save_trial_best": 1,
        "save_trial_latest": 1,
    }
    defaults = config["task_container_defaults"]
    assert defaults["gpu_pod_spec"]["spec"]["nodeSelector"] == {"accelerator_type": "gpu"}
    assert defaults["cpu_pod_spec"]["spec"]["tolerations"][0]["key"] == "gpuAvailable"
    assert release.secret("resolute-generated", "initial-password")
