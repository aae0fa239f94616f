recover_sources := fallback_free.c flush_callback.c flush_plan.c flush_python.c gil.c helper_thread.c ladder.c \
	python_api.c reserve.c step_fallback.c step_flush.c step_reserve.c step_sync.c \
	step_trim.c step_wait.c
