/* Reports that are not told yet, which `gpuoomshim show` reads like others. */
#ifndef GOS_CLI_DRAFT_SHOW_H
#define GOS_CLI_DRAFT_SHOW_H

#include <jansson.h>

#include "../report/document.h"

/* Is the file a draft?  By what is in it; one that cannot be read is none. */
bool gos_draft_is_one(const char *path);

/* As gos_json_read, and what has become of the draft's process. */
json_t *gos_draft_json(const char *path, enum gos_standing *standing);

#endif
