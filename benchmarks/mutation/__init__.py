"""Would the tests notice a wrong line? `make mutate`."""
