"""Vocabulary in which the shape of a configuration is written down, and problems of one."""
