"""Pods that hold room on nodes which have yet to come: what they look like, and keeping as many as are ordered."""
