"""What is wrong with one key of a connection."""


class WrongKey(ValueError):
    """The message never carries a secret's value."""
