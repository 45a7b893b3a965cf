"""Decodes requests into typed values: bodies, query strings, and what protobuf's JSON allows in both."""
