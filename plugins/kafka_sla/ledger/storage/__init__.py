"""The SQL database below the ledger: its tables, former ones, and whose warehouse it is."""
