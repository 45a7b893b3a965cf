from __future__ import annotations

import pytest

from libs.errors import InvalidRequest
from libs.ids import canonical_uuid, require_uuid

STORED = "0b1c7f0e-3f5d-4a53-9b1e-0d9b5f6f0a11"


@pytest.mark.parametrize("text", [STORED.upper(), STORED.replace("-", ""), f"{{{STORED}}}", f"urn:uuid:{STORED}"])
def test_uuids_are_one_however_they_are_written(text: str) -> None:
    assert require_uuid(text, "checkpoint uuid") == canonical_uuid(text) == STORED


@pytest.mark.parametrize("text", ["", "x", STORED[:-1], "\0", "\ud800"])
def test_what_is_no_uuid_is_refused_by_its_name_or_left_as_it_is(text: str) -> None:
    assert canonical_uuid(text) == text
    with pytest.raises(InvalidRequest, match=r"checkpoint uuid '.*' is not a UUID"):
        require_uuid(text, "checkpoint uuid")
