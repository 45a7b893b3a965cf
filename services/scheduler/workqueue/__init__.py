"""Requests to reconcile one object: where they come from, and the workers that serve them. Knows no other room."""
