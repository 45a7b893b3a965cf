"""Pods have the home of the user that they run as."""

from __future__ import annotations

import os
import pwd

from services.launcher.backends.process.preparation.plan import home_of


def test_home_of_a_linked_user_is_his() -> None:
    other = next(entry for entry in pwd.getpwall() if entry.pw_uid != os.geteuid())
    assert home_of(other.pw_uid) == {"HOME": pwd.getpwuid(other.pw_uid).pw_dir}
    # The entrypoint looks for another home when it is this one.
    assert home_of(54321) == {"HOME": "/"}
    assert home_of(None) == home_of(os.geteuid()) == {}
