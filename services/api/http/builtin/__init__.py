"""Routes that the HTTP side serves about itself: health and the description of the interface."""
