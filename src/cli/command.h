/*
 * Commands of gpuoomshim.  Each gets the arguments from its own name on and
 * returns the exit status: 0, 1 when something went wrong, 2 when it was asked
 * for something that does not exist or was given a file it cannot read.
 */
#ifndef GOS_CLI_COMMAND_H
#define GOS_CLI_COMMAND_H

#define GOS_STATUS_OK 0
#define GOS_STATUS_FAILED 1
#define GOS_STATUS_USAGE 2
#define GOS_STATUS_NOT_EXECUTABLE 126 /* as a shell says it */
#define GOS_STATUS_NOT_FOUND 127

int gos_command_run(int argc, char **argv);
int gos_command_show(int argc, char **argv);
int gos_command_options(int argc, char **argv);

/* One line on stderr with the program's name in front. */
__attribute__((format(printf, 1, 2))) void gos_command_complain(const char *format, ...);

#endif
