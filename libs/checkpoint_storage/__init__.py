"""Checkpoint storage in buckets (S3, Google, Azure), as services reach it; no other folder knows the library."""
