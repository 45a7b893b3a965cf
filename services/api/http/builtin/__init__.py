"""Routes that the HTTP side serves about itself: health, metrics, and the description of the interface."""
