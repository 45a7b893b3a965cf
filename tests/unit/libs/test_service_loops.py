"""Which event loop services run on, and what is kept from holding it up."""

from __future__ import annotations

import subprocess
import sys

import pytest


def printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("service", ["api", "scheduler", "launcher", "logs"])
def test_services_run_on_uvloop(service: str) -> None:
    code = f"""
import runpy, libs.service
libs.service.run_service = lambda *_, loop_factory=None: print(loop_factory.__module__)
try:
    runpy.run_module("services.{service}.main", run_name="__main__")
except SystemExit:
    pass
"""
    assert printed(code) == "uvloop\n"


def test_a_scheduler_that_takes_over_loads_its_work_beside_its_event_loop() -> None:
    code = """
import asyncio, sys, threading, services.scheduler.main as scheduler
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "services.scheduler.acting":
            print(threading.current_thread() is threading.main_thread())
sys.meta_path.insert(0, Finder())
assert asyncio.run(scheduler.load_work()) is sys.modules["services.scheduler.acting"].act
"""
    assert printed(code) == "False\n"
