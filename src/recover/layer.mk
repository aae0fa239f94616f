recover_sources := flush_callback.c flush_plan.c ladder.c step_flush.c step_sync.c step_trim.c
