"""Files that a task finds in its container: archives in a ConfigMap, and the volumes that bring them there (pure)."""
