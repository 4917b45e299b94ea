"""What pages and API read of a store."""
