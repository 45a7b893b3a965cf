"""Long polls: look at the row, then wait for news of it and look again."""
