"""Pages of tasks: the host name that they have for themselves, and what they may tell a browser there."""
