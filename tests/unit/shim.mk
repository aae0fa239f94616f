unit_tests += test_shim_kept test_shim_story test_shim_torch_word test_shim_turn

# The rest of the shim is CUDA's names; these parts stand without it.
test_shim_kept_sources := src/shim/kept.c
test_shim_story_sources := src/shim/habit.c src/shim/story.c
test_shim_torch_word_sources := src/shim/torch_word.c src/shim/torch_word_$(machine).S
test_shim_turn_sources := src/shim/turn.c
