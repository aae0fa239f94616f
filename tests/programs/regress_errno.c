/* errno is the host's, whatever happens inside. */
#include <errno.h>

#include "host.h"

static void tell(const char *what)
{
    printf("outcome: errno after %s %d\n", what, errno);
}

int main(void)
{
    CUdeviceptr memory = 0;

    load_driver();
    errno = 1234;
    MUST(driver.init(0));
    tell("cuInit");
    open_device();
    errno = 1235;
    driver.mem_alloc(&memory, (size_t)1 << 60);
    tell("a failure");
    MUST(driver.mem_alloc(&memory, MIB));
    tell("an allocation");
    MUST(driver.mem_free(memory));
    tell("a free");
    driver.mem_free(0x1234);
    tell("a refused free");
    return 0;
}
