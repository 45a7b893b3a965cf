"""Runs in the client's Python: reads one JSON list of arguments per line, answers with code, stdout and stderr.

Starting the client takes a second or two; so one process runs all the commands of a test module.
"""

import contextlib
import io
import json
import os
import sys
import traceback
import warnings


def run(arguments: list[str]) -> dict[str, object]:
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(arguments)
        except SystemExit as exit_:
            code = exit_.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    from determined.cli import cli

    with os.fdopen(os.dup(sys.stdin.fileno())) as commands:
        for line in commands:
            sys.stdin = io.StringIO("n\n")  # to questions the answer is no; some commands close it
            print(json.dumps(run(json.loads(line))), flush=True)
