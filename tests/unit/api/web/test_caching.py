from __future__ import annotations

import pytest

from services.api.web.caching import ASK_FIRST, FOR_A_WHILE, FOREVER, cache_control


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("index.html", ASK_FIRST),
        ("index-3f2a9b1c.html", ASK_FIRST),
        ("assets/index-BxYz12_4.js", FOREVER),
        ("assets/vendor-a-b-Q7rs_-1k.css", FOREVER),
        ("static/js/main.0a1b2c3d4e5f.chunk.js", FOREVER),
        ("assets/index-BxYz1234.js.map", FOREVER),
        ("assets/Inter-Var-9a8b7c6d.woff2", FOREVER),
        ("logo-determined.svg", FOR_A_WHILE),
        ("favicon-32x32-standard.png", FOR_A_WHILE),
        ("Inter-VariableFont.ttf", FOR_A_WHILE),
        ("report-20240131.json", FOR_A_WHILE),
        ("index-BxYz12_4.js", FOR_A_WHILE),
        ("logo-dark-v2a.svg", FOR_A_WHILE),
        ("assets/icon-1024x1024.png", FOR_A_WHILE),
        ("favicon.ico", FOR_A_WHILE),
        ("manifest.json", FOR_A_WHILE),
        ("0a1b2c3d", FOR_A_WHILE),
    ],
)
def test_only_what_is_named_after_its_content_is_kept_forever(name: str, expected: str) -> None:
    assert cache_control(name) == expected
