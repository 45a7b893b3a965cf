"""Pages for people with a browser where no built page (``web.root``) is served: they log in, and wait for a task.

The command line prints addresses of these pages, as those of the WebUI that it knows.
Source: docs/reference/tasks-and-cli.md 4.5.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Final

from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.page import HTML, page
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route

_WAIT_SCRIPT: Final = """
const say = (words) => { document.getElementById("words").textContent = words; };
// .../interactive/ID/TYPE/DESCRIPTION/POOL/PAGE, where PAGE is the address of the page that waits, as a query has it.
const isWrapped = location.pathname.startsWith("/det/interactive/");
const wrapped = () => decodeURIComponent(location.pathname.split("/").pop().replaceAll("+", " "));
const page = isWrapped ? new URL(wrapped(), location.origin) : new URL(location.href);
const task = page.pathname.split("/")[4] ?? "";
const address = new URL(page.searchParams.get("serviceAddr") ?? `/proxy/${task}/`, location.origin);
const login = "/det/login?redirect=" + encodeURIComponent(location.pathname + location.search);

async function look() {
  const answer = await fetch(`/api/v1/tasks/${encodeURIComponent(task)}`);
  if (answer.status === 401) {
    // An address with a token needs no login, and what answers there waits by itself.
    location.replace(address.searchParams.has("token") ? address : login);
    return;
  }
  if (answer.status === 404) {
    say(`There is no task ${task}.`);
    return;
  }
  const found = answer.ok ? (await answer.json()).task : {};
  const allocations = found.allocations ?? [];
  if (found.endTime) {
    say("The task has ended.");
  } else if (allocations.some((allocation) => allocation.isReady)) {
    location.replace(address);
  } else {
    const state = allocations.at(-1)?.state ?? "STATE_QUEUED";
    say(`It is ${state.replace("STATE_", "").toLowerCase()}.`);
    setTimeout(again, 1000);
  }
}
const again = () => look().catch(() => { say("There is no connection."); setTimeout(again, 3000); });

// An address comes from whoever made the link, and leads nowhere but to tasks.
if (address.origin === location.origin && address.pathname.startsWith("/proxy/")) again();
else say("This link does not lead to a task.");
"""

_LOGIN_SCRIPT: Final = """
const form = document.querySelector("form");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = new FormData(form);
  const body = JSON.stringify({username: typed.get("username"), password: typed.get("password"), isHashed: false});
  const answer = await fetch("/api/v1/auth/login", {method: "POST", body});
  if (!answer.ok) {
    const reason = (await answer.json()).error?.error ?? answer.statusText;
    document.getElementById("words").textContent = `This did not work: ${reason}`;
    return;
  }
  goOn();
});

// Where the login was asked for; a provider sends it back as relayState.
const given = new URLSearchParams(location.search);
const wanted = new URL(given.get("redirect") ?? given.get("relayState") ?? "/det", location.origin);
const goOn = () => location.replace(wanted.origin === location.origin ? wanted : "/det");

async function offerProviders() {
  if (given.has("relayState") && (await fetch("/api/v1/me")).ok) {
    goOn();
    return;
  }
  const master = await (await fetch("/api/v1/master")).json();
  for (const provider of master.ssoProviders ?? []) {
    const address = new URL(provider.ssoUrl);
    address.searchParams.set("relayState", wanted.pathname + wanted.search);
    if (provider.alwaysRedirect && !given.has("relayState") && !given.has("password")) {
      location.replace(address);
      return;
    }
    const link = document.createElement("a");
    link.href = address;
    link.textContent = `Log in with ${provider.name}`;
    document.getElementById("providers").append(link);
  }
}
offerProviders().catch(() => { document.getElementById("words").textContent = "There is no connection."; });
"""

_LOGIN_FORM: Final = """<h1>Log in</h1>
<form method="post">
<label>User <input name="username" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password"></label>
<button>Log in</button>
</form>
<p id="providers"></p>"""


def _with_script(title: str, body: str, script: str) -> tuple[bytes, str]:
    """The page, and the policy that lets this script run and no other."""
    words = '<p id="words"></p>\n<noscript><p>This page needs JavaScript.</p></noscript>'
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'"
    )
    return page(title, f"{body}\n{words}\n<script>{script}</script>"), policy


_WAIT: Final = _with_script("Starting", "<h1>One moment</h1>", _WAIT_SCRIPT)
_LOGIN: Final = _with_script("Log in", _LOGIN_FORM, _LOGIN_SCRIPT)


async def wait_page(_: Call[App, None, None]) -> RawResponse:
    return _as_response(*_WAIT)


async def login_page(_: Call[App, None, None]) -> RawResponse:
    return _as_response(*_LOGIN)


def _as_response(content: bytes, policy: str) -> RawResponse:
    headers = {"Cache-Control": "no-cache", "Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"}
    return RawResponse(content, media_type=HTML, headers=headers)


ROUTES: Final = (
    Route(method="GET", path="/det/login", handler=login_page, raw=True, summary="Show the login page"),
    Route(
        method="GET",
        path="/det/interactive/{rest:path}",
        handler=wait_page,
        raw=True,
        summary="Show a page that waits for an interactive task",
    ),
    Route(
        method="GET",
        path="/det/wait/{rest:path}",
        handler=wait_page,
        raw=True,
        summary="Show a page that waits for a task",
    ),
)
