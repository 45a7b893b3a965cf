"""The leaf commands of ``det experiment`` and ``det trial``, each as it is typed.

``{id}`` is an experiment or a trial, ``{out}`` an empty folder.
"""

from __future__ import annotations

from typing import NamedTuple


class Leaf(NamedTuple):
    """``said`` is in what the command prints when it has done it."""

    noun: str
    words: str
    options: str = "{id}"
    said: str = ""

    @property
    def name(self) -> str:
        return f"{self.noun} {self.words}"

    def typed(self, **values: object) -> list[str]:
        return [*self.name.split(), *(word.format(**values) for word in self.options.split())]


LEAVES = [
    Leaf("experiment", "list", ""),
    Leaf("experiment", "list", "--csv --all"),
    Leaf("experiment", "config"),
    Leaf("experiment", "describe"),
    Leaf("experiment", "describe", "{id} --metrics"),
    Leaf("experiment", "describe", "{id} --json"),
    Leaf("experiment", "describe", "{id} --csv"),
    Leaf("experiment", "describe", "{id} --outdir {out}"),
    Leaf("experiment", "logs"),
    Leaf("experiment", "logs", "{id} --json"),
    Leaf("experiment", "download-model-def", "{id} --output-dir {out}"),
    Leaf("experiment", "list-trials"),
    Leaf("experiment", "list-trials", "{id} --csv"),
    Leaf("experiment", "list-checkpoints"),
    Leaf("experiment", "list-checkpoints", "{id} --csv --best 1"),
    Leaf("experiment", "wait", "{id} --polling-interval 1"),
    Leaf("experiment", "download", "{id} -o {out}"),
    Leaf("experiment", "label add", "{id} new"),
    Leaf("experiment", "label remove", "{id} new"),
    Leaf("experiment", "set description", "{id} described"),
    Leaf("experiment", "set name", "{id} digits"),
    Leaf(
        "experiment", "set gc-policy", "{id} --yes --save-experiment-best 1 --save-trial-best 1 --save-trial-latest 1"
    ),
    Leaf("experiment", "set log-retention", "{id} --days 5"),
    Leaf("experiment", "delete-tb-files"),
    Leaf("experiment", "cancel"),
    Leaf("experiment", "kill"),
    Leaf("experiment", "archive"),
    Leaf("experiment", "unarchive"),
    Leaf("experiment", "move", "{id} Uncategorized Uncategorized"),
    Leaf("trial", "describe"),
    Leaf("trial", "describe", "{id} --json"),
    Leaf("trial", "describe", "{id} --csv --metrics-summary"),
    Leaf("trial", "logs"),
    Leaf("trial", "logs", "{id} --json"),
    Leaf("trial", "download", "{id} --latest -o {out}"),
    Leaf("trial", "support-bundle", "{id} -o {out}"),
    Leaf("trial", "set log-retention", "{id} --days 5"),
]
"""What may be done to an experiment that has ended, and to its trial."""

OF_LIVE = [
    Leaf("experiment", "activate", said="Activated experiment"),
    Leaf("experiment", "set max-slots", "{id} 3", "Set `max_slots`"),
    Leaf("experiment", "set weight", "{id} 2", "Set `weight`"),
    Leaf("experiment", "set priority", "{id} 7", "Set `priority`"),
    Leaf("experiment", "pause", said="Paused experiment"),
]
"""What may be done to one that has not."""

AT_THE_END = [
    Leaf("experiment", "continue", said="Continued experiment"),
    Leaf("trial", "kill", said="Killed trial"),
    Leaf("experiment", "delete", "{id} --yes", "is in progress"),
]
"""After which the experiment is another, or none."""

ALIASES = {
    "experiment ls": "experiment list",
    "experiment lt": "experiment list-trials",
    "experiment lc": "experiment list-checkpoints",
    "experiment unpause": "experiment activate",
}
CREATES = "experiment create"
