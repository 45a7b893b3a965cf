"""What each library costs a service: memory that nothing else shares, and processor time, to import it.

Each service is imported in a fresh interpreter, whose loaders are watched: what a module takes without those that it
imports counts for its library. The standby is the scheduler before it has won the lease.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

from tests.bench.result import Result
from tests.bench.system import BenchSystem

SERVICES: Final = {
    "standby": "services.scheduler.main",
    "scheduler": "services.scheduler.main, services.scheduler.acting",
    "api": "services.api.main",
    "logs": "services.logs.main",
    "launcher": "services.launcher.main",
}
LEAST_MB: Final = 1.0
"""Libraries with less are summed up."""

_WATCH: Final = """
import collections, importlib.machinery, json, time
from libs.imports.undocumented import import_undocumented

import_undocumented()

def memory():
    with open("/proc/self/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Pss_Anon:")) / 1024

def processor():
    return time.process_time() * 1000

meter, spent, inner = {meter}, collections.defaultdict(float), []

def watch(loader):
    execute = loader.exec_module
    def exec_module(self, module):
        before = meter()
        inner.append(0.0)
        try:
            return execute(self, module)
        finally:
            took = meter() - before
            spent[module.__name__.partition(".")[0]] += took - inner.pop()
            if inner:
                inner[-1] += took
    loader.exec_module = exec_module

watch(importlib.machinery.SourceFileLoader)
watch(importlib.machinery.ExtensionFileLoader)
bare = meter()
import {modules}
print(json.dumps([bare, meter(), spent]))
"""


def measure(_: BenchSystem) -> list[Result]:
    return [result for service, modules in SERVICES.items() for result in _of_service(service, modules)]


def _of_service(service: str, modules: str) -> list[Result]:
    # By turns: asking for memory takes longer than most modules. The first also compiles what is not compiled yet.
    (bare, whole, megabytes), (_, _, milliseconds) = (_watched(modules, meter) for meter in ("memory", "processor"))
    costly = sorted(((mb, library) for library, mb in megabytes.items() if mb >= LEAST_MB), reverse=True)
    named = [(f"{library} ({milliseconds.get(library, 0):.0f} ms)", mb) for mb, library in costly]
    rest = whole - bare - sum(mb for mb, _ in costly)
    return [
        Result(name=f"{service}: {name}", value=mb, unit="MB", baseline=whole, goal=None, better="lower")
        for name, mb in (*named, ("others", rest), ("the interpreter", bare))
    ]


def _watched(modules: str, meter: str) -> tuple[float, float, dict[str, float]]:
    """Of a bare interpreter, of one that has imported ``modules``, and of each library that was imported."""
    code = _WATCH.replace("{modules}", modules).replace("{meter}", meter)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    bare, whole, spent = json.loads(done.stdout)
    return bare, whole, spent
