"""What surrounds tasks on Kubernetes: their namespaces, the pods of users, and the host name of their pages."""
