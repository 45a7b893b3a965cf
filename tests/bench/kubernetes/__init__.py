"""Measures a launcher on a real API server with simulated nodes; ``make bench-cluster`` runs all of it.

The cluster is given; 64 nodes hold what is measured (``cluster up --nodes 64``). Everything is made in namespaces of
its own, which are gone afterwards.
"""
