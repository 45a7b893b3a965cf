"""The loops that make trials of searches, allocations of trials, and endings of allocations; one file per idea."""
