"""Ports of tasks on the internal task gateway."""
