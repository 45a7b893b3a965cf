"""Commands find an installation by the state folder of ``resolute up``, a settings file, or the environment."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from deploy.operations.settings import load_settings

OF_API = "http: {port: 1}\nbus: {user: services}\ndatabase: {url: 'postgresql://in-state'}\n"


def test_environment_wins_over_a_file_and_a_file_over_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "api.yaml").write_text(OF_API)
    named = tmp_path / "named.yaml"
    named.write_text(OF_API.replace("in-state", "in-file"))
    of_state = load_settings(Namespace(state=str(tmp_path), settings=None))
    assert (of_state.database.url, of_state.bus.user) == ("postgresql://in-state", "services")
    assert load_settings(Namespace(state=str(tmp_path), settings=named)).database.url == "postgresql://in-file"
    monkeypatch.setenv("RESOLUTE_DATABASE__URL", "postgresql://in-environment")
    assert load_settings(Namespace(state=str(tmp_path), settings=named)).database.url == "postgresql://in-environment"
