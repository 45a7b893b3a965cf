"""Reasons for the early end of a trial, as a searcher is told them."""

from enum import StrEnum


class ExitedReason(StrEnum):
    """Why a trial ended early (docs/reference/experiments.md 3.1); a trial that simply completes has no reason."""

    ERRORED = "ERRORED"
    USER_CANCELED = "USER_CANCELED"
    INVALID_HP = "INVALID_HP"
    INIT_INVALID_HP = "INIT_INVALID_HP"

    @property
    def is_invalid_hp(self) -> bool:
        """The user's code refused the hyperparameters: such a trial says nothing about the search."""
        return self in (ExitedReason.INVALID_HP, ExitedReason.INIT_INVALID_HP)
