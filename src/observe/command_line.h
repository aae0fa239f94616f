/* The first words of the command line, with what looks like a secret left out. */
#ifndef GOS_OBSERVE_COMMAND_LINE_H
#define GOS_OBSERVE_COMMAND_LINE_H

#include "evidence.h"

void gos_command_line_observe(struct gos_evidence *evidence);

#endif
