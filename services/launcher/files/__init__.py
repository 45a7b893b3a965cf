"""The scripts that are put into task containers; they run there without the rest of this project.

Shell scripts need bash; Python scripts the standard library of Python 3.8, and those that talk to the master the
``determined`` package of the image.
"""

from __future__ import annotations

from importlib import resources


def load_scripts() -> dict[str, bytes]:
    """Content of every script by file name, as ``task-setup.sh``."""
    folder = resources.files(__name__)
    return {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file() and item.name != "__init__.py"}
