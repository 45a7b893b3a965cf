"""The proxy, and the server behind it that it is measured with."""
