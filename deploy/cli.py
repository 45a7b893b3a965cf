"""The command ``resolute``: one subcommand per thing an administrator does.

Only the module of the subcommand that was asked for is imported: an image with the packages of some parts has the
commands of these parts, and none of them waits for what another one needs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Final, NamedTuple

from deploy.command_line import DEFAULT_STATE, STATE_VARIABLE, Commands, in_words
from libs.errors import ResoluteError
from libs.imports.lean import import_without


class Subcommand(NamedTuple):
    name: str
    module: str
    """Has ``add_parser(commands)``, which adds a parser with the default ``run``: arguments in, exit code out."""
    help: str
    example: str
    """A command line that its help shows."""


SUBCOMMANDS: Final = (
    Subcommand(
        "up",
        "deploy.local.cli",
        "start what does not run; returns when all of it is ready",
        "resolute up --port 8080 --slots 4",
    ),
    Subcommand("status", "deploy.local.cli", "what runs, and where", "resolute status --json"),
    Subcommand(
        "down", "deploy.local.cli", "stop the services; running tasks go on by themselves", "resolute down --tasks"
    ),
    Subcommand(
        "reset",
        "deploy.local.cli",
        "stop everything and delete what was stored",
        "resolute --state /tmp/trial reset --yes",
    ),
    Subcommand("events", "deploy.events.command", "print public events as they happen", "resolute events --since 2h"),
    Subcommand(
        "import",
        "deploy.determined_import.command",
        "bring everything from a Determined 0.38 installation here",
        "resolute import --source postgresql://me@old/determined",
    ),
    Subcommand(
        "config",
        "deploy.operations.config.command",
        "look for mistakes in a configuration file",
        "resolute config check master.yaml",
    ),
    Subcommand(
        "doctor",
        "deploy.operations.doctor.command",
        "look whether everything is there and works",
        "resolute doctor --json",
    ),
    Subcommand(
        "smoke-test",
        "deploy.operations.smoke_test",
        "run a command through the system, and wait for it",
        "resolute smoke-test --master http://127.0.0.1:8080",
    ),
    Subcommand("audit", "deploy.operations.audit", "print who changed what", "resolute audit --user ann --since 2h"),
    Subcommand(
        "limits",
        "deploy.operations.limits",
        "what users, groups and workspaces may hold",
        "resolute limits set user ann --slots 8",
    ),
    Subcommand(
        "shares",
        "deploy.operations.shares",
        "what users, groups and workspaces weigh where they share a pool",
        "resolute shares set group vision --weight 2",
    ),
    Subcommand(
        "check",
        "deploy.operations.check",
        "when an experiment would start, before it is submitted",
        "resolute check experiment.yaml",
    ),
    Subcommand("why", "deploy.operations.why", "why a job waits, and when it is expected to start", "resolute why 17"),
    Subcommand(
        "maintenance",
        "deploy.operations.maintenance",
        "announce when nothing runs on which nodes",
        "resolute maintenance add --nodes node3 --from 2026-01-31T12:00:00Z --to 2026-01-31T14:00:00Z",
    ),
    Subcommand(
        "db",
        "deploy.operations.db",
        "bring the database to the schema of this release, or look which it has",
        "resolute db current",
    ),
    Subcommand(
        "bus",
        "deploy.bus_servers.command",
        "make three servers of one, or one of three, and lose nothing",
        "resolute bus shrink --to nats-0",
    ),
    Subcommand(
        "backup",
        "deploy.backup.command",
        "write the database and the streams into one file",
        "resolute backup before-upgrade.tar.gz",
    ),
    Subcommand(
        "restore",
        "deploy.backup.command",
        "fill a new installation from such a file",
        "resolute restore before-upgrade.tar.gz",
    ),
    Subcommand(
        "completion",
        "deploy.completion",
        "print the script by which a shell completes resolute",
        "resolute completion bash",
    ),
)

ASKED_BY_SHELL: Final = "_ARGCOMPLETE"
"""Variable that is set when a shell asks for completions."""


def main(argv: Sequence[str] | None = None) -> None:
    if ASKED_BY_SHELL in os.environ:
        _answer_shell()
    argv = sys.argv[1:] if argv is None else argv
    arguments = _parse(argv)
    try:
        sys.exit(arguments.run(arguments))
    except ResoluteError as error:
        print(f"resolute: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not try to write the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"resolute: {in_words(error)}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _answer_shell() -> None:
    """What may follow on the line that somebody types, for the script of ``resolute completion``; ends the process."""
    import_module("deploy.completion").answer({each.name: each.module for each in SUBCOMMANDS}, _parser)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """What ``argv`` says; for a wrong option, the usage of the subcommand that it was given to."""
    name = _named(argv)
    parser, commands = _parsers(_module_of(name))
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        of_subcommand = commands.choices.get(name or "", parser)
        of_subcommand.error(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def _named(argv: Sequence[str]) -> str | None:
    """The subcommand that ``argv`` names, if any."""
    first_look = _global_options(add_help=False)
    first_look.add_argument("command", nargs="?")
    name: str | None = first_look.parse_known_args(argv)[0].command
    return name


def _parser(module: str | None) -> argparse.ArgumentParser:
    return _parsers(module)[0]


def _module_of(name: str | None) -> str | None:
    return next((each.module for each in SUBCOMMANDS if each.name == name), None)


def _parsers(module: str | None) -> tuple[argparse.ArgumentParser, Commands]:
    """Everything that can be asked for by name, and the arguments of the subcommands in ``module``."""
    parser = _global_options(add_help=True)
    parser.add_argument("--version", action="version", version=f"%(prog)s {metadata.version('resolute')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    if module is not None:
        import_without("structlog", "rich")  # tracebacks in colour: as much to load as all that is below deploy.local
        import_module(module).add_parser(commands)
        for each in SUBCOMMANDS:
            if each.module == module:
                of_subcommand = commands.choices[each.name]
                of_subcommand.epilog = "; ".join(filter(None, (f"example: {each.example}", of_subcommand.epilog)))
    for each in SUBCOMMANDS:
        if each.module != module:
            commands.add_parser(each.name, help=each.help)
    return parser, commands


def _global_options(*, add_help: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="resolute", description="Run and look after an installation of Resolute.", add_help=add_help
    )
    parser.add_argument(
        "--state", help=f"folder with everything the system stores (default: ${STATE_VARIABLE}, else {DEFAULT_STATE})"
    )
    return parser


if __name__ == "__main__":
    main()
