"""What charts keep of long series."""
