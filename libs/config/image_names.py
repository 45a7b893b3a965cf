"""Which names of container images cannot be any, so that no pull of them ever succeeds. Pure.

Source: the grammar of github.com/distribution/reference, which container runtimes read names by.
"""

from __future__ import annotations

import re
from typing import Final

_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_HOST: Final = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_TAG: Final = r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
_DIGEST: Final = r"[a-zA-Z][a-zA-Z0-9]*(?:[-_+.][a-zA-Z][a-zA-Z0-9]*)*:[a-fA-F0-9]{32,}"
_IMAGE: Final = re.compile(rf"(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*(?::{_TAG})?(?:@{_DIGEST})?")
_LONGEST: Final = 1024
_SHOWN: Final = 100


def image_refusal(name: str) -> str | None:
    """Why this is no name of an image, or None."""
    if len(name) <= _LONGEST and _IMAGE.fullmatch(name):
        return None
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
    return f"{shown!r} is no name of an image: [HOST[:PORT]/]NAME[:TAG][@DIGEST] is, with a NAME in lower case"
