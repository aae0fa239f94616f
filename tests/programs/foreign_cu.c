/* A library of somebody else that happens to export a name of the driver's. */
int cuMemAlloc_v2(void);
__attribute__((visibility("default"))) int cuMemAlloc_v2(void)
{
    return 4711;
}
