"""Measured figures, each as a ratio to a baseline of the same run; ``make bench`` runs them all."""
