"""What every transaction of the scheduler works with: rows under lock, and the messages that commit with them."""
