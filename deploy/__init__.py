"""Deployment: how the system gets to where it runs."""
