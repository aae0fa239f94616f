unit_tests += test_track_budget test_track_event test_track_fallback test_track_fork \
              test_track_graph test_track_history test_track_memory \
              test_track_objects test_track_pending test_track_registry test_track_sample test_track_tag \
              test_track_vmm
