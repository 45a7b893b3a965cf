"""Imports that threads do when somebody first asks for something: one after another."""

from __future__ import annotations

from threading import RLock
from typing import Final

IMPORTING: Final = RLock()
"""Held around what a request imports in a thread.

Modules that import one another are complete for whoever imports them first. Two threads that begin at two ends of a
circle would wait for each other, which the interpreter ends by giving one of them a module that is half executed.

It is taken before the locks that the interpreter has for modules, and nothing takes it while a module is imported: who
holds one of these never waits for it. A module may take it again in the thread that imports it. Event loops do not take
it, for they would wait for threads.
"""
