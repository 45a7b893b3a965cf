"""Opens an address in Chromium without a screen, and prints as JSON what is seen when a CSS selector is found.

Arguments: address, selector, seconds to wait, and the value of the cookie ``auth`` ("" for none). Needs ``selenium``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--window-size=1400,1000",
)


@contextmanager
def opened(*more_flags: str) -> Iterator[webdriver.Chrome]:
    """A browser that knows nobody, for the duration of the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in (*FLAGS, *more_flags):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        yield browser
    finally:
        browser.quit()


def main(address: str, selector: str, timeout_s: str, auth: str) -> None:
    with opened() as browser:
        if auth:
            parts = urlsplit(address)
            browser.get(f"{parts.scheme}://{parts.netloc}/info")
            browser.add_cookie({"name": "auth", "value": auth})
        browser.get(address)
        found = expected_conditions.presence_of_element_located((By.CSS_SELECTOR, selector))
        try:
            element = WebDriverWait(browser, float(timeout_s)).until(found)
            markup = element.get_attribute("outerHTML")
        except TimeoutException:
            markup = ""
        seen = {
            "address": browser.current_url,
            "title": browser.title,
            "found": markup,
            "text": browser.find_element(By.TAG_NAME, "body").text,
            "cookies": {cookie["name"]: cookie["path"] for cookie in browser.get_cookies()},
        }
        sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
