recover_sources := flush_callback.c flush_plan.c flush_python.c gil.c helper_thread.c ladder.c \
	python_api.c step_flush.c step_sync.c step_trim.c
