"""A stand-in for the package of that name: enough of it to say what its allocator holds."""
