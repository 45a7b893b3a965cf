from __future__ import annotations

from pathlib import Path

import pytest

from deploy.local.configuration.web_root import check_web_root
from deploy.local.failure import CannotStart


def test_a_folder_that_is_not_there_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    file, root = tmp_path / "cluster.yaml", tmp_path / "page"
    check_web_root(file)
    file.write_text(f"web: {{root: {root}}}\n")
    with pytest.raises(CannotStart, match=f"{file}: web.root: {root} is no folder"):
        check_web_root(file)
    root.mkdir()
    with pytest.raises(CannotStart, match=r"has no index\.html: name the folder with the built files"):
        check_web_root(file)
    (root / "index.html").write_text("built")
    check_web_root(file)
    file.write_text("web: {rot: /page}\n")
    with pytest.raises(CannotStart, match="did you mean root"):
        check_web_root(file)
