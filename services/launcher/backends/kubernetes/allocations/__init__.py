"""Allocations on a cluster: followed through what informers see, decided upon, reported and removed."""
