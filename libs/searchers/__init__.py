"""Which trials a search creates, stops and replaces; pure, so that a restarted scheduler arrives at the same trials."""
