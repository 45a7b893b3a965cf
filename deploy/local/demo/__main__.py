"""``make demo``: start everything, run a real search through the unmodified ``det``, show what came of it."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from deploy.local import system
from deploy.local.configuration import certificates
from deploy.local.configuration.initial_password import initial_password
from deploy.local.failure import CannotStart
from deploy.local.kubernetes import add_arguments
from deploy.local.layout import Layout, Options

ROOT: Final = Path(__file__).parents[3]
CLIENT: Final = ROOT / ".venv-client" / "bin"
EXAMPLE: Final = ROOT / "examples" / "digits"
LOG_LINES: Final = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", help="state folder (default: .resolute)")
    parser.add_argument("--port", type=int, help="port of the api; 0 for a free one")
    add_arguments(parser)
    parsed = parser.parse_args()
    layout = Layout.at(parsed.state)
    start = argparse.Namespace(
        **{"host": "127.0.0.1", "slots": None, "python": None, "config": None, "passwords": None, **vars(parsed)}
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
    sys.exit(Demo(options, password=made).run())


class Demo:
    def __init__(self, options: Options, *, password: str | None) -> None:
        self._master = options.master_url
        self._environment = {
            **os.environ,
            "DET_MASTER": options.master_url,
            **certificates.for_clients(options.certificate),
            **({"DET_USER": "determined", "DET_PASS": password} if password else {}),
        }
        self._has_password = password is not None
        self._as_pods = options.kubernetes is not None

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
        print(
            f"  export DET_MASTER={self._master} PATH={CLIENT.relative_to(ROOT)}:.venv/bin:$PATH\n"
            f"{'  det user login determined' + chr(10) if self._has_password else ''}"
            f"  det experiment describe {experiment}\n"
            "  det experiment create examples/digits/one.yaml examples/digits -f\n"
            "  det job list\n"
            "  resolute events          # in another terminal\n"
            "  resolute status; resolute down"
        )
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
            sys.exit(f"demo: det {arguments[0]} {arguments[1]} failed; logs are in the state folder")
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
