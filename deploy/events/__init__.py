"""``resolute events``: public events as they happen, and those that are kept."""
