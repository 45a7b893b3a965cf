"""Which of several launchers of a pool acts: the holder of a Lease."""
