/*
 * cuCtxCreate has had four signatures under one name.  Each version that is
 * asked for is called with its own arguments, and they must arrive.
 */
#define LOAD_DLSYM
#include "host.h"
#include "host_newer.h"

typedef CUresult (*resolver)(const char *, void **, int, cuuint64_t,
                             CUdriverProcAddressQueryResult *);
typedef CUresult (*create_2)(CUcontext *, unsigned, CUdevice);
typedef CUresult (*create_3)(CUcontext *, CUexecAffinityParam *, int, unsigned, CUdevice);
typedef CUresult (*create_4)(CUcontext *, struct CUctxCreateParams_st *, unsigned, CUdevice);

static void *library;

/* Flags are the argument whose place moved. */
static void look(const char *what, CUresult result, CUcontext context, unsigned wanted)
{
    CUresult (*get_flags)(unsigned *) = (CUresult(*)(unsigned *))dlsym(library, "cuCtxGetFlags");
    CUresult (*destroy)(CUcontext) = (CUresult(*)(CUcontext))dlsym(library, "cuCtxDestroy_v2");
    unsigned flags = 0;

    if (result == CUDA_SUCCESS)
        get_flags(&flags);
    printf("outcome: %s result %d flags arrived %d\n", what, (int)result, flags == wanted);
    if (result == CUDA_SUCCESS)
        destroy(context);
}

int main(void)
{
    static const int versions[] = {3020, 11040, 12050};
    void *created[3] = {NULL, NULL, NULL};
    CUcontext context = NULL;

    open_device();
    library = open_driver();
    resolver resolve = (resolver)dlsym(library, "cuGetProcAddress_v2");
    for (int i = 0; i < 3; i++)
        MUST(resolve("cuCtxCreate", &created[i], versions[i], 0, NULL));
    look("version 2", ((create_2)created[0])(&context, CU_CTX_SCHED_SPIN, 0), context,
         CU_CTX_SCHED_SPIN);
    look("version 3", ((create_3)created[1])(&context, NULL, 0, CU_CTX_SCHED_YIELD, 0), context,
         CU_CTX_SCHED_YIELD);
    if (created[2] != created[1])
        look("version 4", ((create_4)created[2])(&context, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0),
             context, CU_CTX_SCHED_BLOCKING_SYNC);
    return 0;
}
