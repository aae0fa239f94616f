/* Parts of a document by a path: "devices.0.ledger", "verdict.code". */
#ifndef GOS_CLI_JSON_PATH_H
#define GOS_CLI_JSON_PATH_H

#include <jansson.h>

/* The part (borrowed), or NULL after a complaint that names what there is instead. */
const json_t *gos_json_find(const json_t *root, const char *path);

#endif
