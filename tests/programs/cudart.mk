# What real CUDA runtimes are tried with: a driver that has every row and no
# device, a preload library that writes down look-ups, a host of two runtimes.
cudart_driver := $(BUILD)/tests/cudart-driver/libcuda.so.1
programs += $(cudart_driver) $(programs_dir)/libcudart_recorder.so $(programs_dir)/cudart_two
cudart_numbered := $(BUILD)/tests/cudart-numbered
numbered_runtimes := $(foreach n,12 13,$(cudart_numbered)/libcudart.so.$(n))
programs += $(numbered_runtimes) $(foreach n,12 13,$(cudart_numbered)/libuser_of_$(n).so)

$(cudart_driver): tests/programs/cudart_driver.c
	$(say) HOST $@
	$(quiet)$(build_host) -D__CUDA_API_VERSION_INTERNAL -shared -fPIC -fvisibility=hidden \
	    -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic

$(programs_dir)/cudart_two: tests/programs/cudart_two.c
	$(say) HOST $@
	$(quiet)$(build_host) -ldl

# Runtimes of two versions that say which they are, and a user of each.  Their names are
# listed: as a pattern, it would be how to make their .d files, too.
$(numbered_runtimes): $(cudart_numbered)/libcudart.so.%: tests/programs/cudart_numbered.c
	$(say) HOST $@
	$(quiet)$(build_host) -DNUMBER=$* -shared -fPIC -Wl,-soname,$(@F)

$(cudart_numbered)/libuser_of_%.so: tests/programs/cudart_number_user.c $(cudart_numbered)/libcudart.so.%
	$(say) HOST $@
	$(quiet)$(build_host) -shared -fPIC -L$(@D) -l:libcudart.so.$* -Wl,-rpath,'$$ORIGIN'
