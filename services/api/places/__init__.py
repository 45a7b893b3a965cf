"""The ground that tasks stand on: namespaces and nodes of a cluster, which the api asks launchers to change."""
