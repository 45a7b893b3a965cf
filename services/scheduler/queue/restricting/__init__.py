"""What restricts a plan beside capacity: limits, maintenance, nodes that are disabled."""
