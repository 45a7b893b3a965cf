"""What the capture wrapper writes, and the log intake reads: the grammar of one captured line (pure)."""
