"""What a cluster says, in the words of our contracts (pure): pods as observations, events as lines, nodes as capacity."""
