"""Search methods: which trials to create, and which to stop."""
