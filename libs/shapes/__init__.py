"""The words in which the shape of a configuration is written down, and what is wrong with one."""
