"""Tunnels: connections of clients that are taken over from HTTP, joined with connections to tasks."""
