"""``resolute doctor``: whether everything that an installation needs is there and works, and what to do if not."""
