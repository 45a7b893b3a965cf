"""Long polls: read the row, then wait for a notification and read it again."""
