"""Task containers as pods: one Job for each allocation, in the namespace of its pool or of its workspace."""
