"""Parts of a pool that are near each other, as labels of its nodes name them, and gangs that stay within one. Pure."""
