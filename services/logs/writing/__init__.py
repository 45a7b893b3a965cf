"""Stores log lines, each exactly once: one transaction per batch, and one writer per shard."""
