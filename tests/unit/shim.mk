unit_tests += test_shim_episode

# The rest of the shim is CUDA's names; this part stands without it.
test_shim_episode_sources := src/shim/deferred.c src/shim/episode.c src/shim/habit.c \
                             src/shim/moment.c src/shim/stack_room.c
