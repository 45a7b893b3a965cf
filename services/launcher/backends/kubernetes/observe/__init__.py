"""What a cluster says, in our words (pure): pods as observations, events as lines, nodes as capacity."""
