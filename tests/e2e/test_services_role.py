"""Services of ``resolute up`` are no superusers of its PostgreSQL."""

from __future__ import annotations

from deploy.local.configuration.plan import SERVICES_ROLE
from libs.db.connecting.settings import APPLICATION
from tests.harness.whole_system import WholeSystem


def test_no_service_has_the_superuser_or_its_password(whole_system: WholeSystem) -> None:
    connected = whole_system.rows(
        "SELECT DISTINCT usename, rolsuper FROM pg_stat_activity JOIN pg_roles ON rolname = usename"
        f" WHERE application_name = '{APPLICATION}'"
    )
    assert connected == [{"usename": SERVICES_ROLE, "rolsuper": False}]
    layout, options = whole_system.layout, whole_system.options
    assert layout.services_password.stat().st_mode & 0o077 == 0
    settings = [path.read_text() for path in layout.config.glob("*.yaml")]
    assert not [text for text in settings if options.postgres_password in text]
