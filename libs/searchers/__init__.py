"""Search methods and what drives them: which trials to create, stop and replace. Pure, so that a restart repeats it."""
