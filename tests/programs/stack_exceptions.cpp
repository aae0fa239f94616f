// C++ exceptions thrown through frames that allocate device memory: what is
// caught, and which destructors run, must be the same with the library.
#include <cuda.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void must(CUresult result)
{
    if (result != CUDA_SUCCESS)
        throw Failure("error " + std::to_string(static_cast<int>(result)));
}

class Buffer {
public:
    explicit Buffer(std::size_t bytes) { must(cuMemAlloc(&address_, bytes)); }
    ~Buffer()
    {
        cuMemFree(address_);
        destroyed++;
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    static thread_local int destroyed;

private:
    CUdeviceptr address_ = 0;
};

thread_local int Buffer::destroyed = 0;

int descend(int depth)
{
    Buffer buffer(1 << 20);
    if (depth == 0)
        throw std::out_of_range("bottom");
    return descend(depth - 1) + 1;
}

int caught_at_top()
{
    int caught = 0;
    for (int i = 0; i < 200; i++) {
        try {
            descend(i % 20);
        } catch (const std::out_of_range &) {
            caught++;
        }
    }
    return caught;
}

// An allocation that cannot succeed becomes an exception in the host's own code.
std::string too_much()
{
    try {
        Buffer small(1 << 20);
        Buffer huge(std::size_t(1) << 50);
    } catch (const Failure &failure) {
        return failure.what();
    }
    return "nothing";
}

} // namespace

int main()
{
    CUdevice device;
    CUcontext context;
    must(cuInit(0));
    must(cuDeviceGet(&device, 0));
    must(cuDevicePrimaryCtxRetain(&context, device));
    must(cuCtxSetCurrent(context));
    const int caught_here = caught_at_top();
    std::printf("outcome: caught %d, destroyed %d\n", caught_here, Buffer::destroyed);
    std::printf("outcome: too much gave %s\n", too_much().c_str());
    std::vector<std::thread> threads;
    std::vector<int> caught(4);
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            must(cuCtxSetCurrent(context));
            caught[i] = caught_at_top();
        });
    for (auto &thread : threads)
        thread.join();
    for (int count : caught)
        std::printf("outcome: thread caught %d\n", count);
    return 0;
}
