"""What a launcher costs on a real API server with simulated nodes; ``make bench-cluster`` runs them all.

The cluster is given; 64 nodes hold what is measured (``cluster up --nodes 64``). Everything is made in namespaces of
its own, which are gone afterwards.
"""
