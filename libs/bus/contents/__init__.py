"""What the streams of the bus hold, for those who look after it rather than work with it."""
