"""Errors of a caller of a searcher; expected outcomes (a report that lacks its metric) are values instead."""

from libs.errors import InvalidRequest


class InvalidSearcher(InvalidRequest):
    """The searcher section is not one that can be run."""


class InvalidSpace(InvalidRequest):
    """The hyperparameters cannot be sampled or laid out as a grid."""


class UnknownTrialError(LookupError):
    """An event names a trial that the search was never told about with ``trial_created``: a mistake of the engine."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"trial '{request_id}' is not part of this search")
