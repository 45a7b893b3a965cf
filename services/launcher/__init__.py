"""Runs what was scheduled: the launcher of a pool carries out its orders on a cluster or on this machine."""
