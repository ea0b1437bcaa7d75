"""One drive: which it is, what it says of itself, and whether it queues."""
