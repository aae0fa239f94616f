"""A stand-in for the package of that name: just enough of it to be asked for its cache."""
