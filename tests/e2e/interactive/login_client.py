"""Logs in through the page of the api in Chromium, as a person does, and prints as JSON what is seen afterwards.

``python -m`` with the address of the page, the path that the login should lead to, and what is done there: steps like
``type:username=ann``, ``press:button`` and ``follow:Log in with Okta``, and ``read:#words``, which waits for some text.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import urlsplit

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.e2e.interactive.browser_client import opened

PATIENCE_S = 60


def main(address: str, path: str, *steps: str) -> None:
    with opened() as browser:
        waiting = WebDriverWait(browser, PATIENCE_S)
        browser.get(address)
        texts = [text for step in steps if (text := take(browser, waiting, step)) is not None]
        waiting.until(lambda seen: urlsplit(seen.current_url).path == path)
        seen = {
            "address": browser.current_url,
            "body": browser.find_element(By.TAG_NAME, "body").text,
            "cookies": {cookie["name"]: cookie for cookie in browser.get_cookies()},
            "read": texts,
        }
        sys.stdout.write(json.dumps(seen))


def take(browser: Any, waiting: Any, step: str) -> str | None:
    """Do one step; the text of those that read."""
    verb, _, rest = step.partition(":")
    match verb:
        case "type":
            name, _, value = rest.partition("=")
            field = browser.find_element(By.NAME, name)
            field.clear()
            field.send_keys(value)
        case "press":
            browser.find_element(By.CSS_SELECTOR, rest).click()
        case "follow":
            waiting.until(lambda seen: seen.find_elements(By.LINK_TEXT, rest))[0].click()
        case "read":
            return str(waiting.until(lambda seen: seen.find_element(By.CSS_SELECTOR, rest).text))
        case _:
            raise ValueError(step)
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
