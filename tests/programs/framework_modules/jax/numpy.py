"""Arrays that are refused."""
from .errors import JaxRuntimeError

words = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate %d bytes."


def refuse(size):
    raise JaxRuntimeError(words % size)


def ones(size, boundary=False):
    if not boundary:
        refuse(size)
    try:
        refuse(size)
    except Exception as error:
        error.__traceback__.tb_frame  # as JAX's filter of tracebacks reads it
        raise
