"""Messages that are sent once however many tasks try, and those that share a cause. Sends nothing itself."""
