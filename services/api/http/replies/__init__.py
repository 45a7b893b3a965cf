"""Replies of handlers, and how they go over the wire: one message, bytes, or a stream of messages."""
