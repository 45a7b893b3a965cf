"""Task containers as pods: one Job for each allocation, in one namespace, with the rights of that namespace only."""
