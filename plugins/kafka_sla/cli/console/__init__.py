"""What every command works with: its words, where it works, and how it prints. Runs no command."""
