"""Wiring of the Kubernetes backend of one pool: the only place where its parts are put together."""
