# Hosts that keep books of their own.  What the rules of programs.mk build, only
# under their names here.
own_hosts := own_devices own_graph own_ipc own_managed own_vmm
programs += $(foreach path,$(load_paths),$(own_hosts:%=$(programs_dir)/%.$(path)))
