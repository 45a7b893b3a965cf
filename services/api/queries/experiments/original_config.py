"""The text a user submitted, with the values under ``data.secrets`` hidden and, from others, its credentials.

Source: docs/reference/experiments.md 1.9.
"""

from __future__ import annotations

from typing import Final

import yaml

from libs.config import CREDENTIALS, InvalidText, mask_secrets, parse_text

_OF_OWNERS: Final = ("secrets", "\\")  # a backslash may spell a letter
_OF_OTHERS: Final = (*_OF_OWNERS, *sorted(CREDENTIALS))


def mask_original_config(text: str, *, to_owner: bool) -> str:
    """The text itself, unless it has secrets: then it is written anew, without them and without its comments."""
    if not any(word in text for word in (_OF_OWNERS if to_owner else _OF_OTHERS)):
        return text
    try:
        config = parse_text(text)
    except InvalidText:
        return ""  # it was accepted once, by other rules; what cannot be read cannot be masked
    if not isinstance(config, dict):
        return text
    masked = mask_secrets(config, to_owner=to_owner)
    return text if masked == config else yaml.safe_dump(masked, sort_keys=False)
