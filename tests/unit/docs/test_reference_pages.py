"""The generated pages of the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from deploy.documentation.reference_pages import PAGES, SERVICES
from deploy.documentation.rights_page import SECTIONS
from deploy.documentation.struct_fields import fields_of
from libs.cluster.config import ClusterConfig
from services.api.access.rights.actions import MATRIX

DOCS: Final = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_that_of_the_code(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "run make docs, and commit what it writes"


def test_every_key_of_the_configuration_and_of_the_services_says_what_it_means() -> None:
    structs = {"cluster configuration": ClusterConfig, **SERVICES}
    silent = [
        (where, ".".join(one.path))
        for where, struct in structs.items()
        for one in fields_of(struct)
        if not one.description
    ]
    assert silent == []


def test_every_right_is_in_the_table_once() -> None:
    named = [action for actions in SECTIONS.values() for action in actions]
    assert sorted(action.name for action in named) == sorted(action.name for action in MATRIX)
