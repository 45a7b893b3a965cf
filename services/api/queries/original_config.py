"""The text a user submitted, with the values under ``data.secrets`` hidden.

Source: spec/experiments.md 1.9.
"""

from __future__ import annotations

import yaml

from libs.config import InvalidText, mask_secrets, parse_text


def mask_original_config(text: str) -> str:
    """The text itself, unless it has secrets: then it is written anew, without them and without its comments."""
    if "secrets" not in text and "\\" not in text:  # a backslash may spell a letter
        return text
    try:
        config = parse_text(text)
    except InvalidText:
        return ""  # it was accepted once, by other rules; what cannot be read cannot be masked
    if not isinstance(config, dict):
        return text
    masked = mask_secrets(config)
    return text if masked == config else yaml.safe_dump(masked, sort_keys=False)
