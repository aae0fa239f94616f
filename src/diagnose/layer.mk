diagnose_sources := \
    advice.c \
    code_place.c \
    codes.c \
    diagnose.c \
    doubt.c \
    flushed.c fragmentation.c \
    framework.c \
    holder.c \
    leak.c \
    ledger.c \
    library.c \
    pool_sum.c \
    requirement.c \
    rule_call.c \
    rule_exhausted.c \
    rule_framework.c \
    rule_host.c \
    rule_leak.c \
    rule_others.c \
    rule_policy.c \
    rule_refused.c \
    rule_rehearsal.c \
    rule_request.c \
    rule_unexplained.c \
    rule_unused.c \
    setting.c \
    situation.c \
    trend.c \
    verdict.c \
    wording.c
