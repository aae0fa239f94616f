/* The library with the work in it; see broke_cudnn.c. */
int cudnnCreate(const char *path);

int cudnnCreate(const char *path)
{
    return path[0] == '/' ? 8000 : 8001;
}
