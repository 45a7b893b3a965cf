"""What users upload to have it in their tasks: packed once, kept as it is, looked into on request. Pure."""
