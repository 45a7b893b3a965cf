"""Generated names, and what is hidden when a configuration is shown."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from libs.config import InvalidConfig, check_unmasked, mask_secrets, random_name, three_words
from libs.config.names import WORDS


def test_name_is_three_different_words_of_the_list() -> None:
    name = random_name(random.Random(3))
    match = re.fullmatch(r"Experiment \(([a-z]+)-([a-z]+)-([a-z]+)\)", name)
    assert match is not None
    assert len(set(match.groups())) == 3
    assert set(match.groups()) <= set(WORDS)
    assert random_name(random.Random(3)) == name
    assert random_name(random.Random(3), "Shell") == f"Shell ({three_words(random.Random(3))})"


def test_words_are_distinct() -> None:
    assert len(WORDS) == len(set(WORDS)) > 100


SECRETS: list[tuple[Any, Any]] = [
    ({"data": {"secrets": {"a": "x", "b": {"c": 1}}}}, {"data": {"secrets": {"a": "********", "b": "********"}}}),
    ({"data": {"secrets": "x", "url": "y"}}, {"data": {"secrets": "********", "url": "y"}}),
    ({"data": {"url": "x"}}, {"data": {"url": "x"}}),
    ({"data": None}, {"data": None}),
    ({}, {}),
]


@pytest.mark.parametrize(("config", "masked"), SECRETS, ids=[str(config) for config, _ in SECRETS])
def test_secrets_of_the_data_section_are_hidden(config: Any, masked: Any) -> None:
    before = str(config)
    for to_owner in (True, False):
        assert mask_secrets(config, to_owner=to_owner) == masked
    assert str(config) == before


def test_credentials_are_hidden_from_all_but_the_owner() -> None:
    config = {
        "environment": {"image": "i", "registry_auth": {"username": "u", "password": "p", "auth": None}},
        "checkpoint_storage": {"type": "s3", "bucket": "b", "access_key": "a", "secret_key": "s"},
        "hyperparameters": {"password": {"type": "const", "val": "not one"}},
    }
    assert mask_secrets(config, to_owner=True) == config
    assert mask_secrets(config, to_owner=False) == {
        "environment": {"image": "i", "registry_auth": {"username": "u", "password": "********", "auth": None}},
        "checkpoint_storage": {"type": "s3", "bucket": "b", "access_key": "********", "secret_key": "********"},
        "hyperparameters": {"password": {"type": "const", "val": "not one"}},
    }


def test_whatever_was_masked_is_named_when_it_comes_back() -> None:
    config = {
        "data": {"secrets": {"a": "x"}, "url": "y"},
        "checkpoint_storage": {"type": "s3", "bucket": "b", "access_key": "a", "secret_key": None},
        "environment": {"registry_auth": {"username": "u", "password": "p"}},
    }
    check_unmasked(config)
    with pytest.raises(InvalidConfig) as refused:
        check_unmasked(mask_secrets(config, to_owner=False))
    named = [line.partition(": *")[0].rpartition("<config>.")[2] for line in str(refused.value).splitlines()]
    assert named == ["checkpoint_storage.access_key", "data.secrets.a", "environment.registry_auth.password"]
