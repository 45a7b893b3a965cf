"""Places where task containers can run, behind one small protocol."""
