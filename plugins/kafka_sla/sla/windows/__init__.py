"""What the rows of one window say of an SLA, added up. Pure."""
