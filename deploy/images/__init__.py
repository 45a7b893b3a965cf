"""Builds container images, one per part of the system."""
