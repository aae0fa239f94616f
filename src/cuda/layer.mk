cuda_sources := array_bytes.c driver.c entrypoint.c error.c loader.c nvml.c visible_devices.c
