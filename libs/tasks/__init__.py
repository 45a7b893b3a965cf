"""Tasks other than trials, as they are stored until they are launched. Pure."""
