base_sources := clock.c cxx_name.c elf_image.c inject_option.c intern.c libc_symbol.c \
                limit_option.c lock.c log.c loss.c memory.c module.c module_facts.c \
                module_path.c module_symbol.c options.c os.c phdr_walk.c readable.c residence.c \
                spelling.c stderr.c symbol_index.c text.c text_units.c thread.c
