cuda_sources := array_bytes.c driver.c entrypoint.c error.c loader.c nvml.c relaxed.c \
                visible_devices.c
