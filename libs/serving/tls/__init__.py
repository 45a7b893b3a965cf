"""TLS of a server: its certificate and key, and what becomes of them while it runs."""
