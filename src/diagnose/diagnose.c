/* The parts in order: ledgers, block maps, holders, verdict. */
#include <stddef.h>
#include <string.h>

#include "diagnosis.h"
#include "holder.h"
#include "need.h"
#include "requirement.h"

static bool is_about_host(const struct gos_request *request)
{
    return request->kind == GOS_KIND_HOST || request->kind == GOS_KIND_REGISTERED ||
           request->kind == GOS_KIND_ADDRESS;
}

/* The device with most memory of this process; a snapshot is about it. */
static int busiest_device(const struct gos_diagnosis *diagnosis)
{
    int best = -1;
    for (int i = 0; i < GOS_DEVICE_MAX; i++)
        if (diagnosis->ledgers[i].known &&
            (best < 0 || diagnosis->ledgers[i].own_bytes > diagnosis->ledgers[best].own_bytes))
            best = i;
    return best;
}

static int device_in_question(const struct gos_evidence *evidence,
                              const struct gos_diagnosis *diagnosis)
{
    const struct gos_request *request = &evidence->request;
    if (!request->api)
        return busiest_device(diagnosis);
    if (is_about_host(request))
        return -1;
    if (request->device >= 0 && request->device < GOS_DEVICE_MAX)
        return request->device;
    return busiest_device(diagnosis);
}

typedef void make_fragmentation(const struct gos_evidence *evidence,
                                const struct gos_device_evidence *device,
                                struct gos_fragmentation *fragmentation);

static void make_devices(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis,
                         make_fragmentation *make)
{
    bool clamped = false;
    for (int i = 0; i < GOS_DEVICE_MAX; i++) {
        if (!evidence->devices[i].present)
            continue;
        make(evidence, &evidence->devices[i], &diagnosis->fragmentation[i]);
        gos_ledger_make(evidence, &evidence->devices[i], &diagnosis->fragmentation[i],
                        &diagnosis->ledgers[i]);
        clamped = clamped || diagnosis->ledgers[i].clamped;
    }
    if (clamped)
        gos_evidence_incomplete(evidence,
                                "tracked memory is more than the device says this process has "
                                "(managed memory that is not resident, or numbers of different "
                                "moments); lines of the ledger were cut");
}

static void make_rest(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis)
{
    gos_requirements_check(evidence, diagnosis);
    diagnosis->device = device_in_question(evidence, diagnosis);
    gos_holders_make(evidence,
                     diagnosis->device >= 0 ? (uint32_t)diagnosis->device : GOS_DEVICE_HOST,
                     diagnosis);
    gos_need_make(evidence, diagnosis);
    gos_verdict_make(evidence, diagnosis);
}

void gos_diagnose(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis)
{
    *diagnosis = (struct gos_diagnosis){.evidence = evidence, .device = -1};
    make_devices(evidence, diagnosis, gos_fragmentation_make);
    make_rest(evidence, diagnosis);
}

void gos_diagnose_again(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis)
{
    memset(diagnosis, 0, offsetof(struct gos_diagnosis, fragmentation));
    memset(&diagnosis->verdict, 0, sizeof *diagnosis - offsetof(struct gos_diagnosis, verdict));
    diagnosis->evidence = evidence;
    diagnosis->device = -1;
    make_devices(evidence, diagnosis, gos_fragmentation_make_again);
    make_rest(evidence, diagnosis);
}
