"""``resolute config check FILE``: a cluster configuration (``master.yaml``), or values for the Helm chart."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import structs

from deploy.command_line import Commands, behind_the_command
from deploy.operations.config.cluster import cluster_mistakes
from deploy.operations.config.mistakes import Mistake, as_json, as_text, exit_code
from deploy.operations.config.pedl import HERE
from deploy.operations.config.rendering import has_chart, rendering_mistakes
from deploy.operations.config.values import SCHEMA, read_schema, values_mistakes
from libs.cluster.config import ClusterConfig
from libs.cluster.legacy_config import ELSEWHERE
from libs.errors import InvalidRequest

KINDS: Final = ("cluster", "values")
_CLUSTER_KEYS: Final = {field.encode_name for field in structs.fields(ClusterConfig)} | ELSEWHERE.keys()

_PEDL_KEYS: Final = {path.partition(".")[0] for path in HERE}


def add_parser(commands: Commands) -> None:
    of_config = commands.add_parser("config", description=__doc__, parents=[behind_the_command()])
    actions = of_config.add_subparsers(required=True, metavar="check")
    check = actions.add_parser("check", help="say what is wrong with a file, and what to do; exit code 1 for errors")
    check.add_argument("file", type=Path)
    check.add_argument("--as", dest="kind", choices=KINDS, help="what the file is (default: what its keys look like)")
    check.add_argument("--schema", type=Path, default=SCHEMA, help="values.schema.json of the chart")
    check.add_argument("--json", action="store_true", help="for programs")
    check.set_defaults(run=_check)


def _check(arguments: Namespace) -> int:
    mistakes = mistakes_of(arguments.file, kind=arguments.kind, schema=arguments.schema)
    print((as_json if arguments.json else as_text)(str(arguments.file), mistakes))
    return exit_code(mistakes)


def mistakes_of(file: Path, *, kind: str | None, schema: Path) -> list[Mistake]:
    """What is wrong with a file of either kind; None is what it looks like."""
    try:
        document = yaml.safe_load(file.read_text()) or {}
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        return [Mistake("error", "", f"it is not YAML: {error}")]
    if (kind or kind_of(document)) == "values":
        return _mistakes_of_values(file, document, schema)
    return cluster_mistakes(file)


def _mistakes_of_values(file: Path, values: Any, schema: Path) -> list[Mistake]:
    """Those of names and types, or where there are none, those that rendering the chart beside the schema shows."""
    found = values_mistakes(values, read_schema(schema))
    if found or not has_chart(schema.parent):
        return found
    return rendering_mistakes(file, values, schema.parent)


def kind_of(document: Any) -> str:
    """Values of the chart are in camel case, a cluster configuration never is; PEDL has names of its own. Pure."""
    if not isinstance(document, dict) or document.keys() <= _CLUSTER_KEYS:
        return "cluster"
    names = [str(name) for name in document]
    return "values" if any(name != name.lower() or name in _PEDL_KEYS for name in names) else "cluster"
