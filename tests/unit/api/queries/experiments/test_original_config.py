"""Secrets and credentials in the text that a user submitted."""

from __future__ import annotations

import pytest

from services.api.queries.experiments.original_config import mask_original_config


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("data: {secrets: {k: hunter2}}  # mine", True),
        ('{"data": {"\\u0073ecrets": {"k": "hunter2"}}}', True),
        ("name: no secrets here  # comment", False),
        ("name: plain", False),
        ("- not\n- a mapping of secrets", False),
    ],
)
def test_secrets_in_submitted_text(text: str, hidden: bool) -> None:
    for to_owner in (True, False):
        masked = mask_original_config(text, to_owner=to_owner)
        assert "hunter2" not in masked
        assert (masked != text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "environment: {registry_auth: {username: u, password: hunter2}}",
        "checkpoint_storage: {type: s3, bucket: b, access_key: a, secret_key: hunter2}",
        '{"checkpoint_storage": {"type": "azure", "connection_str\\u0069ng": "hunter2"}}',
    ],
)
def test_credentials_in_submitted_text_are_for_its_owner(text: str) -> None:
    assert mask_original_config(text, to_owner=True).count("hunter2") == 1
    masked = mask_original_config(text, to_owner=False)
    assert "hunter2" not in masked
    assert "********" in masked
