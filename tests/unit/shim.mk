unit_tests += test_shim_episode test_shim_torch_word test_shim_turn

# The rest of the shim is CUDA's names; these parts stand without it.
test_shim_episode_sources := src/shim/deferred.c src/shim/episode.c src/shim/habit.c \
                             src/shim/moment.c src/shim/stack_room.c
test_shim_torch_word_sources := src/shim/torch_word.c src/shim/torch_word_$(machine).S
test_shim_turn_sources := src/shim/turn.c
