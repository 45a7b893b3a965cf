"""Resolves the symbolic links of an upload over the tree that it makes. Pure.

Shortening ``d/..`` to nothing is right only while ``d`` is a directory: with ``d -> .`` it leads to the parent of the
whole tree. So each step is taken as the kernel takes it (Linux path_resolution(7)).
"""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Mapping
from typing import Final

MOST_FOLLOWED: Final = 40
"""As the kernel: after more links it gives up, and nothing is reached."""


def leads_out(links: Mapping[str, str], name: str) -> bool:
    """Whether a link can be followed to a place outside of the tree.

    links  name -> target of every link; no name lies below another one
    name   one of them
    """
    here = deque(posixpath.dirname(name).split("/"))
    return _leaves(links, here, deque(links[name].split("/")))


def below_a_link(links: Mapping[str, str], name: str) -> str | None:
    """The link that would be followed to reach ``name``, if there is one."""
    while name := posixpath.dirname(name):
        if name in links:
            return name
    return None


def _leaves(links: Mapping[str, str], here: deque[str], steps: deque[str]) -> bool:
    place = [part for part in here if part]
    followed = 1
    while steps:
        step = steps.popleft()
        if step in ("", "."):
            continue
        if step == "..":
            if not place:
                return True
            place.pop()
            continue
        target = links.get("/".join([*place, step]))
        if target is None:
            place.append(step)
            continue
        followed += 1
        if followed > MOST_FOLLOWED:
            return False
        steps.extendleft(reversed(target.split("/")))
    return False
