"""Allocations on a cluster: made, followed through what informers see, decided upon, reported and removed."""
