"""Metric reports of training code: what each means for its trial, and how many share one commit."""
