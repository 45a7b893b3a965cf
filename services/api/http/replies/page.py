"""The look of the few pages that people see without a WebUI. Pure."""

from __future__ import annotations

from typing import Final

HTML: Final = "text/html; charset=utf-8"
STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem; }
code { background: #8882; padding: 0.1em 0.3em; border-radius: 3px; }
label, input, button { display: block; font: inherit; margin: 0.3rem 0; }
"""


def page(title: str, body: str, *, head: str = "") -> bytes:
    """A whole page; ``body`` and ``head`` are HTML, with everything escaped that is not ours."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{STYLE}</style>
{head}
</head>
<body>
{body}
</body>
</html>
""".encode()
