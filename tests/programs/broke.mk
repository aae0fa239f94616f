# Hosts of the kinds that other shims have broken.  What the rules of programs.mk
# build, only under their names here.
broke_driver_hosts := broke_books broke_exit broke_import broke_loader broke_places
broke_libraries := broke_constructor broke_cudnn broke_cudnn_ops
programs += $(foreach path,$(load_paths),$(broke_driver_hosts:%=$(programs_dir)/%.$(path))) \
            $(programs_dir)/broke_names $(programs_dir)/broke_context_abi \
            $(broke_libraries:%=$(programs_dir)/lib%.so)

# Its functions are found by the library that it loads.
$(load_paths:%=$(programs_dir)/broke_loader.%): LDFLAGS += -rdynamic

$(programs_dir)/broke_names $(programs_dir)/broke_context_abi: $(programs_dir)/%: tests/programs/%.c
	$(say) HOST $@
	$(quiet)$(build_host) -ldl
