"""The page of the REST interface, in a real browser: it shows the description, whatever its address names."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.api import ApiProcess

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("named", "opened"), [("#getMe", ["getMe"]), ("#get%4de", ["getMe"]), ("#%", []), ("", [])])
def test_the_page_opens_what_its_address_names(api: ApiProcess, tmp_path: Path, named: str, opened: list[str]) -> None:
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("needs a browser: `apt-get install chromium`")
    # In virtual time, which stands still while the page waits for an answer.
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    argv = [browser, *options, f"--user-data-dir={tmp_path}", f"{api.url}/docs{named}"]
    page = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=240).stdout
    operations = re.findall(r"<details\b[^>]*>", page)
    assert len(operations) > 100, page[:2000]
    assert [re.findall(r'id="(\w+)"', each)[0] for each in operations if " open" in each] == opened
