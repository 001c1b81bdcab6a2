/* A GPU driver whose device memory is host memory: both vendors' calls that the program makes.
 * An allocation is tagged, so that a pointer that did not come from here is caught. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 256

static struct {
    char *at;
    size_t bytes;
} live[MOST];

static int allocate(void **memory, size_t bytes)
{
    for (int i = 0; i < MOST; i++)
        if (!live[i].at) {
            live[i].at = *memory = malloc(bytes);
            live[i].bytes = bytes;
            return 0;
        }
    return 2;
}

static int release(void *memory)
{
    for (int i = 0; i < MOST; i++)
        if (memory && live[i].at == memory) {
            free(memory);
            live[i].at = NULL;
            return 0;
        }
    return 1;
}

/* A copy whose device side does not lie within an allocation is refused. */
static int copy(void *to, const void *from, const void *device, size_t bytes)
{
    for (int i = 0; i < MOST; i++)
        if (live[i].at && (const char *)device >= live[i].at &&
            (const char *)device + bytes <= live[i].at + live[i].bytes) {
            memcpy(to, from, bytes);
            if (getenv("GPU_SPOILS") && to == device && bytes)
                *(char *)to ^= 0x55;
            return 0;
        }
    return 700;
}

static int devices(void)
{
    return getenv("GPU_COUNT") ? atoi(getenv("GPU_COUNT")) : 2;
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int *count) { return *count = devices(), 0; }
int cuDeviceGet(int *device, int number)
{
    fprintf(stderr, "device %d\n", number);
    return *device = number, number >= devices();
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = context, device >= devices(); }
int cuCtxSetCurrent(void *context) { return !context; }
int cuMemAlloc_v2(unsigned long long *memory, size_t bytes)
{
    void *pointer;
    int code = allocate(&pointer, bytes);
    *memory = (uintptr_t)pointer;
    return code;
}
int cuMemFree_v2(unsigned long long memory) { return release((void *)(uintptr_t)memory); }
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes)
{
    return copy((void *)(uintptr_t)to, from, (void *)(uintptr_t)to, bytes);
}
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes)
{
    return copy(to, (void *)(uintptr_t)from, (void *)(uintptr_t)from, bytes);
}
int cuCtxSynchronize(void) { return 0; }
int cuGetErrorString(int code, const char **text) { return *text = code == 700 ? "illegal address" : "other", 0; }

int hipGetDeviceCount(int *count) { return *count = devices(), 0; }
int hipSetDevice(int device) { return device >= devices(); }
int hipMalloc(void **memory, size_t bytes) { return allocate(memory, bytes); }
int hipFree(void *memory) { return release(memory); }
int hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return copy(to, from, kind == 1 ? to : from, bytes);
}
int hipDeviceSynchronize(void) { return 0; }
const char *hipGetErrorString(int code) { return code == 700 ? "illegal address" : "other"; }
