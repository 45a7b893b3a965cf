"""Shapes of the parts of an experiment configuration, most of which other tasks have too."""
