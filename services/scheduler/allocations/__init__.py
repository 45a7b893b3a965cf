"""The life of one allocation: what its launcher reports, how it is asked to end, and how it ended."""
