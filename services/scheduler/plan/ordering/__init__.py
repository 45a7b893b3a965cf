"""In which order the requests of a queue are looked at, by the policy of its pool."""
