"""``make demo``: start everything, run a real search through the unmodified ``det``, show what came of it.

``--master URL`` shows it on a system that runs already, wherever that is, as the user of ``DET_USER`` and ``DET_PASS``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from deploy.local import system
from deploy.local.configuration import certificates
from deploy.local.configuration.initial_password import initial_password
from deploy.local.failure import CannotStart
from deploy.local.kubernetes import add_arguments
from deploy.local.layout import Layout

ROOT: Final = Path(__file__).parents[3]
CLIENT: Final = ROOT / ".venv-client" / "bin"
EXAMPLE: Final = ROOT / "examples" / "digits"
LOG_LINES: Final = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", help="state folder (default: .resolute)")
    parser.add_argument("--port", type=int, help="port of the api; 0 for a free one")
    parser.add_argument("--master", metavar="URL", help="address of a system that runs already")
    parser.add_argument("--pods", action="store_true", help="with --master: its tasks are pods, without scikit-learn")
    add_arguments(parser)
    arguments = parser.parse_args()
    if arguments.master:
        sys.exit(Demo(arguments.master, as_pods=arguments.pods).run())
    sys.exit(on_this_machine(arguments).run())


def on_this_machine(arguments: argparse.Namespace) -> Demo:
    """Start what does not run."""
    layout = Layout.at(arguments.state)
    start = argparse.Namespace(
        **{"host": None, "slots": None, "python": None, "config": None, "passwords": None, **vars(arguments)}
    )
    known = initial_password(layout)
    try:
        started_at = time.monotonic()
        options = system.start(layout, start)
    except CannotStart as error:
        sys.exit(f"demo: {error}")
    say(f"PostgreSQL, NATS and four services run, ready after {time.monotonic() - started_at:.1f} s")
    made = initial_password(layout)
    if made is not None and known is None:
        say(f"admin and determined have the password {made} (kept in {layout.initial_password}, and not shown again)")
    return Demo(
        options.master_url,
        environment={
            **certificates.for_clients(options),
            **({"DET_USER": "determined", "DET_PASS": made} if made else {}),
        },
        as_pods=options.kubernetes is not None,
        hints=("resolute events          # in another terminal", "resolute status; resolute down"),
    )


class Demo:
    """One search on one system.

    environment  of the client, besides the address and what it has anyway
    as_pods      whether tasks have an image of their own
    hints        commands that the user may try next, besides those that always work
    """

    def __init__(
        self,
        master: str,
        *,
        environment: Mapping[str, str] = MappingProxyType({}),
        as_pods: bool = False,
        hints: Sequence[str] = (),
    ) -> None:
        self._master = master
        self._environment = {**os.environ, "DET_MASTER": master, **environment}
        self._login = ("det user login determined",) if "DET_PASS" in environment else ()
        self._as_pods = as_pods
        self._hints = hints

    def run(self) -> int:
        with tempfile.TemporaryDirectory() as folder:
            context = EXAMPLE
            if self._as_pods:
                context = _with_packed_data(Path(folder) / EXAMPLE.name)
            created = self.det("experiment", "create", str(EXAMPLE / "search.yaml"), str(context))
        found = re.search(r"Created experiment (\d+)", created)
        if found is None:
            say(f"the experiment was not created:\n{created}")
            return 1
        experiment = found.group(1)
        waited_from = time.monotonic()
        self.det("experiment", "wait", "--polling-interval", "1", experiment)
        say(f"the search took {time.monotonic() - waited_from:.0f} s")

        # The same client once more, as a library.
        report = [str(CLIENT / "python"), str(Path(__file__).with_name("report.py")), experiment]
        outcome = subprocess.run(report, env=self._environment, check=False)
        self.det("experiment", "logs", "--tail", str(LOG_LINES), experiment)
        say("the system goes on running; try next:")
        commands = (
            f"export DET_MASTER={self._master} PATH={CLIENT.relative_to(ROOT)}:.venv/bin:$PATH",
            *self._login,
            f"det experiment describe {experiment}",
            "det experiment create examples/digits/one.yaml examples/digits -f",
            "det job list",
            *self._hints,
        )
        print("".join(f"  {command}\n" for command in commands))
        return outcome.returncode

    def det(self, *arguments: str) -> str:
        """Run ``det``, showing it. Ends the demo when it fails."""
        say(f"det {' '.join(argument.replace(f'{ROOT}/', '') for argument in arguments)}")
        process = subprocess.Popen(
            [str(CLIENT / "det"), *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            # The progress of the upload overwrites itself in a terminal, and would fill a page here.
            if line.strip() and not line.startswith("Preparing files"):
                print(f"  {line}", end="", flush=True)
        if process.wait() != 0:
            sys.exit(f"demo: det {arguments[0]} {arguments[1]} failed")
        return "".join(lines)


def _with_packed_data(context: Path) -> Path:
    """The example with its images in a file, for pods whose image has no scikit-learn."""
    shutil.copytree(EXAMPLE, context, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([str(CLIENT / "python"), "data.py"], cwd=context, check=True)
    return context


def say(text: str) -> None:
    print(f"\n==> {text}", flush=True)


if __name__ == "__main__":
    main()
