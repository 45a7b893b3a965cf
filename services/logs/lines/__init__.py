"""(pure) What fluent-bit sends, what of it is new, and in which order it is stored."""
