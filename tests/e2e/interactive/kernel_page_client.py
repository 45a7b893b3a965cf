"""Opens the address of a notebook in Chromium, and runs a line of Python by what its page may do, with its cookies.

``python -m`` with the address, the value of the cookie ``auth`` ("" for none), and the line. Prints JSON.
"""

from __future__ import annotations

import json
import sys
from urllib.parse import urlsplit

from selenium.webdriver.support.ui import WebDriverWait

from tests.e2e.interactive.browser_client import opened

RUN = """
const [base, code, done] = arguments;
(async () => {
  const xsrf = document.cookie.split("; ").find((each) => each.startsWith("_xsrf="))?.slice(6) ?? "";
  const made = await fetch(`${base}api/kernels`, {method: "POST", body: "{}", headers: {"X-XSRFToken": xsrf}});
  if (!made.ok) return done({status: made.status, text: await made.text()});
  const {id} = await made.json();
  const socket = new WebSocket(`${location.origin.replace("http", "ws")}${base}api/kernels/${id}/channels`);
  const msg_id = crypto.randomUUID();
  const header = {msg_id, msg_type: "execute_request", username: "", session: crypto.randomUUID(), version: "5.3"};
  const content = {code, silent: false, store_history: true, user_expressions: {}, allow_stdin: false};
  socket.onopen = () => socket.send(JSON.stringify(
    {header, parent_header: {}, metadata: {}, content, channel: "shell", buffers: []}));
  socket.onerror = () => done({text: "the websocket was refused"});
  socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.msg_type === "stream" && message.parent_header.msg_id === msg_id) {
      done({status: made.status, text: message.content.text, origin: location.origin});
    }
  };
})().catch((error) => done({text: String(error)}));
"""


def main(address: str, auth: str, code: str) -> None:
    with opened() as browser:
        parts = urlsplit(address)
        if auth:
            browser.get(f"{parts.scheme}://{parts.netloc}/info")
            browser.add_cookie({"name": "auth", "value": auth})
        browser.get(address)
        WebDriverWait(browser, 60).until(lambda seen: "/lab" in seen.current_url and seen.get_cookie("_xsrf"))
        browser.set_script_timeout(60)
        base = "/".join(urlsplit(browser.current_url).path.split("/")[:3]) + "/"
        sys.stdout.write(json.dumps(browser.execute_async_script(RUN, base, code)))


if __name__ == "__main__":
    main(*sys.argv[1:])
