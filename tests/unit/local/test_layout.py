"""What was chosen at the first ``up``, for the next one and for other releases."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from deploy.local.kubernetes import KubernetesOptions
from deploy.local.layout import Layout, Options

PLAIN: Final = Options(
    api_port=8080,
    nats_port=4222,
    postgres_port=5432,
    postgres_data="/state/postgres",
    postgres_password="hidden",
    logs_port=8081,
    python="/usr/bin/python3",
    slots=2,
)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"standby": True, "subscribers": ("billing",)},
        {"certificate": "/tls/tls.crt", "authority": "/tls/ca.crt"},
        {"kubernetes": KubernetesOptions(kubeconfig="/kubeconfig", namespace="tasks", address="10.0.0.1")},
    ],
)
def test_what_was_chosen_is_read_again(layout: Layout, changes: dict[str, object]) -> None:
    options = replace(PLAIN, **changes)  # type: ignore[arg-type]
    options.save(layout)
    assert Options.load(layout) == options


def test_a_release_from_before_an_option_reads_what_does_not_use_it(layout: Layout) -> None:
    PLAIN.save(layout)
    assert "authority" not in json.loads(layout.options_file.read_text())


def test_an_option_of_a_later_release_is_left_alone(layout: Layout) -> None:
    PLAIN.save(layout)
    kept = json.loads(layout.options_file.read_text())
    layout.options_file.write_text(json.dumps({**kept, "of_a_later_release": 1}))
    assert Options.load(layout) == PLAIN
