"""What any task container gets, whatever runs it: environment, files and command (pure)."""
