"""Lines of the launcher in the log of a task: about its pods, and from events of the cluster."""
