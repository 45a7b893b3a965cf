"""(pure) What a log line means: its prefixes and level, the text that clients print, and how lines become batches."""
