"""Election of the one launcher of a pool that acts: the holder of a Lease."""
