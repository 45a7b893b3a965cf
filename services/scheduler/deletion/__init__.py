"""Deletion of experiments, projects, workspaces and namespaces, and of the files of checkpoints."""
