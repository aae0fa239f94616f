cuda_sources := driver.c entrypoint.c error.c loader.c nvml.c
