"""What is wrong with the folder of a built page, in words for whoever has named it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

INDEX: Final = "index.html"


def problem_of_root(root: str) -> str | None:
    """None for a folder whose page can be served by this process."""
    folder = Path(root)
    if not folder.is_absolute():
        return f"{root} must be an absolute path"
    if not folder.is_dir():
        return f"{root} is no folder"
    if not (folder / INDEX).is_file():
        return f"{root} has no {INDEX}: name the folder with the built files"
    if not os.access(folder, os.X_OK) or not os.access(folder / INDEX, os.R_OK):
        return f"{root} cannot be read"
    return None
