"""Names of images, as container runtimes read them."""

from __future__ import annotations

import pytest

from libs.config.defaults import CPU_IMAGE, CUDA_IMAGE, ROCM_IMAGE
from libs.config.image_names import image_refusal

DIGEST = "sha256:" + "0a" * 32
NAMES = [
    CPU_IMAGE,
    CUDA_IMAGE,
    ROCM_IMAGE,
    "python",
    "python:3.11",
    "own/image_of--mine:v1.2_3",
    "localhost/a",
    "registry.example.com:5000/a/b/c__d:1",
    "[2001:db8::1]:5000/a",
    f"a@{DIGEST}",
    f"gcr.io/a/b:1@{DIGEST}",
]
NO_NAMES = [
    "Python:3.11",
    "my image",
    "a:b:c",
    "docker://python",
    "https://registry.example.com/a",
    "a/",
    "/a",
    "a:",
    "a:-1",
    "a@sha256:12",
    "a\n",
    "é",
    "a" * 2000,
    "a/" * 400 + "A",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_can_be_pulled_are_taken(name: str) -> None:
    assert image_refusal(name) is None


@pytest.mark.parametrize("name", NO_NAMES, ids=[repr(name[:20]) for name in NO_NAMES])
def test_names_that_cannot_be_pulled_are_refused_in_words(name: str) -> None:
    said = image_refusal(name)
    assert said is not None
    assert "is no name of an image: [HOST[:PORT]/]NAME[:TAG][@DIGEST] is" in said
    assert len(said) < 250
