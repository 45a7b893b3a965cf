"""What training code measures: what a report means for its trial, and how many reports share one commit."""
