"""Takes log lines in over HTTP: who sends them, what a body may occupy, and when all of a container has come."""
