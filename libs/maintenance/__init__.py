"""Maintenance: times that administrators announce, in which nothing runs on some nodes."""
