"""Prepares what a pod needs before it starts: its files, its mounts, its variables and its interpreter."""
