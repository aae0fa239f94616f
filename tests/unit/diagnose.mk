diagnose_tests := test_diagnose_blocks test_diagnose_framework test_diagnose_leak \
                  test_diagnose_ledger test_diagnose_matrix test_diagnose_names test_diagnose_need \
                  test_diagnose_proof test_diagnose_rehearsal test_diagnose_requirement \
                  test_diagnose_revise test_diagnose_setting test_diagnose_told \
                  test_diagnose_trend test_diagnose_verdict

unit_tests += $(diagnose_tests)

# Made-up evidence, sites and modules, shared by all of them.
$(foreach test,$(diagnose_tests),$(eval $(test)_sources := tests/unit/diagnose_fixture.c))
