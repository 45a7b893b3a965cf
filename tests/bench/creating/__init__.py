"""What creating an experiment costs, until its trial is ordered to run."""
