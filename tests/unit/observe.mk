observe_fakes := tests/unit/observe_fake_files.c tests/unit/observe_fake_gpu.c

unit_tests += test_observe_devices test_observe_environment test_observe_fault \
              test_observe_frameworks test_observe_growth test_observe_helper \
              test_observe_host test_observe_not_seen \
              test_observe_processes test_observe_refusal_words test_observe_secrecy \
              test_observe_snapshot test_observe_sort test_observe_streams test_observe_versions

test_observe_devices_sources := $(observe_fakes)
test_observe_environment_sources := $(observe_fakes)
test_observe_fault_sources := $(observe_fakes)
test_observe_host_sources := $(observe_fakes)
test_observe_not_seen_sources := $(observe_fakes)
test_observe_processes_sources := $(observe_fakes)
test_observe_streams_sources := $(observe_fakes)
test_observe_versions_sources := $(observe_fakes)
