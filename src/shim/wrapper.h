/* Our own function for each row of entrypoints.def, as handed to the host. */
#ifndef GOS_SHIM_WRAPPER_H
#define GOS_SHIM_WRAPPER_H

void *gos_wrapper(int row);

#endif
