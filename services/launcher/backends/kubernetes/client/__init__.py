"""Talking to an API server: address and credentials, requests, the objects as we read them, informers."""
