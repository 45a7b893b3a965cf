"""Deliveries of webhooks, and the receiver that they are measured with."""
