"""What a handler may return, and how it goes over the wire: one message, bytes, or a stream of messages."""
