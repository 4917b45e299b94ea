"""What a cluster lets us read and what its brokers can do, for `kafka-sla check`. Nothing else imports it."""
