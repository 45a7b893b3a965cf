"""``resolute config check``: what is wrong with a file that an administrator has written, before anything reads it."""
