"""Reads what a service prints, and tells the master when a line says that it is ready, or that it waits for data.

Source: docs/reference/harness-protocol.md 8.1. Needs ``determined`` in the Python it runs with.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Python 3.8 cannot write these types down while it runs
    from collections.abc import Callable, Iterable

    Post = Callable[[str], None]

RETRY_S = 5.0


class NotWanted(Exception):
    """The master said no, and would say so again."""


def watch(lines: Iterable[str], ready: re.Pattern[str], waiting: re.Pattern[str] | None, post: Post) -> None:
    """Post ``waiting`` at its first line, and ``ready`` at its first, which is the end. Raises NotWanted for that one:
    a master that does not want to know of waiting has said nothing about being ready."""
    for line in lines:
        if ready.match(line):
            post("ready")
            return
        if waiting is not None and waiting.match(line):
            waiting = None
            try:
                post("waiting")
            except NotWanted as error:
                sys.stderr.write(f"WARNING: the master does not want to know that this task waits: {error}\n")


def make_post() -> Post:
    """What posts to this allocation; tries for ever while the master cannot answer, raises NotWanted when it does not
    want to."""
    from determined.common import api  # noqa: PLC0415  the rest of this file is tested without the package
    from determined.common.api import authentication, certs  # noqa: PLC0415
    from requests import exceptions  # noqa: PLC0415

    master = os.environ["DET_MASTER"]
    allocation = os.environ["DET_ALLOCATION_ID"]
    session = authentication.login_from_task(master, cert=certs.default_load(master))

    def post(what: str) -> None:
        while True:
            try:
                session.post(f"/api/v1/allocations/{allocation}/{what}")
                return
            except (api.errors.ForbiddenException, api.errors.UnauthenticatedException) as error:
                raise NotWanted(str(error)) from error
            except api.errors.APIException as error:
                if error.status_code < 500:
                    raise NotWanted(str(error)) from error
                problem = str(error)
            except (api.errors.BadRequestException, exceptions.RequestException) as error:  # no answer
                problem = str(error)
            sys.stderr.write(f"WARNING: cannot report {what}, trying again in {RETRY_S:.0f} s: {problem}\n")
            time.sleep(RETRY_S)

    return post


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ready-regex", type=re.compile, required=True)
    parser.add_argument("--waiting-regex", type=re.compile)
    args = parser.parse_args()
    # Whatever a service prints must not end the wait for the one line that counts.
    with open(sys.stdin.fileno(), errors="replace", closefd=False) as lines:
        try:
            watch(lines, args.ready_regex, args.waiting_regex, make_post())
        except NotWanted as error:
            sys.exit(f"ERROR: the master does not want to know whether this task is ready: {error}")


if __name__ == "__main__":
    main()
