"""Start of a search: its first trials, and the snapshot of its searcher once they have been created."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from libs.searchers.actions import Create
from libs.searchers.searcher import Searcher


class SearchStart(Struct, frozen=True, kw_only=True):
    creates: tuple[Create, ...]
    snapshot: dict[str, Any]
    """Of the searcher, which has been told that all of them were created."""
    progress: float


def start_search(config: Mapping[str, Any]) -> SearchStart:
    """Start the search of a complete experiment configuration. Raises InvalidSearcher or InvalidSpace.

    Both the api, which starts it, and the scheduler, which goes on with it, come to the same trials.
    """
    seed = config["reproducibility"]["experiment_seed"]
    searcher = Searcher.create(config["searcher"], config["hyperparameters"], seed)
    creates = tuple(action for action in searcher.initial_trials() if isinstance(action, Create))
    for create in creates:
        searcher.trial_created(create.request_id)
    return SearchStart(creates=creates, snapshot=searcher.snapshot(), progress=searcher.progress())


def resume_single(config: Mapping[str, Any], request_id: str) -> SearchStart:
    """Start the search of a ``single`` configuration anew, around the trial that it already has.

    Its hyperparameters are drawn again, because the configuration may have changed; its name is not, which another
    space would change too. Raises InvalidSearcher or InvalidSpace.
    """
    seed = config["reproducibility"]["experiment_seed"]
    searcher = Searcher.create(config["searcher"], config["hyperparameters"], seed)
    creates = tuple(
        Create(request_id, action.trial_seed, action.hparams)
        for action in searcher.initial_trials()
        if isinstance(action, Create)
    )
    searcher.trial_created(request_id)
    return SearchStart(creates=creates, snapshot=searcher.snapshot(), progress=searcher.progress())
