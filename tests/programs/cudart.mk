# What real CUDA runtimes are tried with: a driver that has every row and no
# device, a preload library that writes down look-ups, a host of two runtimes.
cudart_driver := $(BUILD)/tests/cudart-driver/libcuda.so.1
programs += $(cudart_driver) $(programs_dir)/libcudart_recorder.so $(programs_dir)/cudart_two

$(cudart_driver): tests/programs/cudart_driver.c
	$(say) HOST $@
	$(quiet)$(build_host) -D__CUDA_API_VERSION_INTERNAL -shared -fPIC -fvisibility=hidden \
	    -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic

$(programs_dir)/cudart_two: tests/programs/cudart_two.c
	$(say) HOST $@
	$(quiet)$(build_host) -ldl
