"""Log lines: their prefixes and level, the text that clients print, and how lines become batches. Pure."""
