"""Secrets of the checkpoint storage of a workspace, masked and restored."""

from __future__ import annotations

from libs.config import MASK
from services.api.queries.workspaces.workspaces import masked, unmasked


def test_masking_storage_can_be_undone_with_what_was_there() -> None:
    storage = {"type": "s3", "bucket": "b", "access_key": "A", "secret_key": "S"}
    assert masked(storage) == {**storage, "access_key": MASK, "secret_key": MASK}
    assert unmasked({**masked(storage), "secret_key": "new"}, storage) == {**storage, "secret_key": "new"}
    assert unmasked({"type": "s3", "secret_key": MASK}, None) == {"type": "s3", "secret_key": None}
