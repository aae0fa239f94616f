recover_sources := ladder.c step_sync.c step_trim.c
