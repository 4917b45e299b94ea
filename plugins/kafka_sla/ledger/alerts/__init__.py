"""What receivers have been told about alerts, and mails that are sent once."""
