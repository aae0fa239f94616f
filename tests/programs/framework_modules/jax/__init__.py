"""A stand-in for the package of that name, whose back end may have been initialised."""
from . import profiler  # noqa: F401
