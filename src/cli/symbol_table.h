/* Whether a file can name its functions, or only those that it exports. */
#ifndef GOS_CLI_SYMBOL_TABLE_H
#define GOS_CLI_SYMBOL_TABLE_H

#include <stdbool.h>

/* Does the ELF file have the table that stripping removes? */
bool gos_has_symbol_table(const char *path);

#endif
