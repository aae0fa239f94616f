recover_sources := fallback_free.c flush_callback.c flush_plan.c ladder.c reserve.c \
                   step_fallback.c step_flush.c step_reserve.c step_sync.c step_trim.c \
                   step_wait.c
