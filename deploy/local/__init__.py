"""Runs everything on one machine, without Docker and without a cluster."""
