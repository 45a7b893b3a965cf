"""Statements that go to the driver without a detour, for the hottest paths."""
