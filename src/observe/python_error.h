/* An exception of the host's interpreter in words. */
#ifndef GOS_OBSERVE_PYTHON_ERROR_H
#define GOS_OBSERVE_PYTHON_ERROR_H

#include "../base/text.h"
#include "python_api.h"

/* Take the exception that is set, and put "KeyError: 'reserved'".  With the GIL. */
void gos_python_put_error(const struct gos_python_api *py, struct gos_text *text);

#endif
