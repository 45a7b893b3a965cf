"""Which checkpoints are kept and which are deleted. Pure."""
