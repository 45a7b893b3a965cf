"""Administration of a cluster, its namespaces and nodes, which the api asks launchers for: it has no rights there."""
