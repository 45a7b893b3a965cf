"""Requests to tasks: HTTP that goes through, on connections that are kept for the next one."""
