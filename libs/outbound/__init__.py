"""Connections to addresses that users name."""
