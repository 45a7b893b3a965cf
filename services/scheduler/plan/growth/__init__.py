"""Growing a pool: for whom the cluster is asked for nodes, for how many, and until when."""
