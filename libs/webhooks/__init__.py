"""Webhooks: which of them hear of what, what they are told, and how it is sent (docs/reference/platform.md 11)."""
