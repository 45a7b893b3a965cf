"""Looks at a page of a task in Chromium with a login; prints as JSON what it could do, and what became of the login.

Arguments: main address, path of the page, the value of the login's cookie, and what else Chromium is told.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.e2e.interactive.browser_client import opened


def main(address: str, path: str, auth: str, *flags: str) -> None:
    with opened(*flags) as browser:
        browser.get(f"{address}/info")
        browser.add_cookie({"name": "auth", "value": auth, "httpOnly": True, "sameSite": "Lax"})
        browser.get(f"{address}{path}")
        said = WebDriverWait(browser, 30).until(_said)
        here = browser.current_url
        of_task = {cookie["name"]: [cookie["value"], cookie["path"]] for cookie in browser.get_cookies()}
        browser.get(f"{address}/api/v1/me")
        me = browser.find_element(By.TAG_NAME, "body").text
        seen = {"said": json.loads(said), "address": here, "cookies": of_task, "me": me}
        seen["logins"] = [cookie["value"] for cookie in browser.get_cookies() if cookie["name"] == "auth"]
        sys.stdout.write(json.dumps(seen))


def _said(browser: Any) -> str:
    found = browser.find_elements(By.ID, "said")
    return str(found[0].text) if found else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
