"""Where the database is, with the password of the moment."""

from __future__ import annotations

from pathlib import Path

from libs.db.connecting.settings import DatabaseSettings, address


def test_password_may_be_in_the_url_beside_it_or_in_a_file(tmp_path: Path) -> None:
    url = "postgresql://me:old@db-1:5432,db-2:5432/resolute?sslmode=verify-full"
    assert address(DatabaseSettings(url=url.replace("://", "+asyncpg://"))) == url
    assert address(DatabaseSettings(url=url, password="n/e@w")) == url.replace("old", "n%2Fe%40w")
    (tmp_path / "password").write_text("newest\n")
    settings = DatabaseSettings(url=url, password="new", password_file=str(tmp_path / "password"))
    assert address(settings) == url.replace("old", "newest")
