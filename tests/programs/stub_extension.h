#ifndef STUB_EXTENSION_H
#define STUB_EXTENSION_H

#include <stddef.h>

typedef int stub_ask(size_t bytes);

/* Says so if the thread ends inside.  Counts calls that began while another was inside. */
int stub_extension_ask(stub_ask *ask, size_t bytes);
int stub_extension_overlaps(void);

/* With an exception set, which stays set. */
int stub_extension_ask_while_raising(stub_ask *ask, size_t bytes);

/*
 * Lets go of the GIL for it, after so many new lists that Python's collector is
 * due; it gets to it here up to 3.11, at the next bytecode of any thread in 3.12.
 */
int stub_extension_ask_with_collection_due(stub_ask *ask, size_t bytes);

#endif
