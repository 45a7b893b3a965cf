"""Files of checkpoints, read from storage that this process can see and sent as one archive."""
