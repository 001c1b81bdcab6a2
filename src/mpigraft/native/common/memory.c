/* Where buffers live. GPU runtimes are found at run time by dlopen of the driver's own
 * library, which every machine with a GPU has, so one binary serves machines with and without. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* How much memory a node has left for us: what the kernel says and what the job may take. */

static double first_number(const char *path, double otherwise)
{
    FILE *file = fopen(path, "r");
    double number = otherwise;
    if (file && fscanf(file, "%lf", &number) != 1)
        number = otherwise; /* "max" */
    if (file)
        fclose(file);
    return number;
}

static double memory_available(void)
{
    char line[256];
    double kib, bytes = 1e18;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf kB", &kib) == 1)
            bytes = 1024 * kib;
    if (file)
        fclose(file);
    return bytes;
}

/* Room in one control group; page cache is counted as used, so this errs on the safe side. */
static double room_in(const char *folder, const char *limit, const char *usage)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", folder, limit);
    double most = first_number(path, 1e18);
    snprintf(path, sizeof path, "%s/%s", folder, usage);
    return most < 1e17 ? most - first_number(path, 0) : 1e18;
}

/* The least room of the process's memory cgroup and all above it, version 2 and 1. */
static double memory_of_cgroup(void)
{
    char line[2100], folder[4200];
    double least = 1e18;
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file)) {
        bool v2 = !strncmp(line, "0::", 3);
        char *path = v2 ? line + 2 : strstr(line, ":memory:");
        if (!path)
            continue;
        path += v2 ? 1 : (int)strlen(":memory:");
        path[strcspn(path, "\n")] = 0;
        for (char *cut = path + strlen(path); cut; cut = strrchr(path, '/')) {
            *cut = 0;
            snprintf(folder, sizeof folder, "/sys/fs/cgroup%s%s", v2 ? "" : "/memory", path);
            double room = v2 ? room_in(folder, "memory.max", "memory.current")
                             : room_in(folder, "memory.limit_in_bytes", "memory.usage_in_bytes");
            least = room < least ? room : least;
        }
    }
    if (file)
        fclose(file);
    return least;
}

/* Bytes that the buffers of a node may take: the rest is for MPI and everybody else. */
double memory_for_buffers(void)
{
    double machine = memory_available(), group = memory_of_cgroup();
    return 0.75 * (machine < group ? machine : group);
}

enum { PAGE = 4096 };

const char *const BUFFERS[] = {"host", "cuda", "rocm", NULL};

/* ---- host ---- */

void *host_allocate(size_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, PAGE, bytes ? bytes : 1))
        DIE("out of memory: %zu bytes", bytes);
    memset(memory, 0, bytes); /* pages are there before the clock runs */
    return memory;
}

/* ---- CUDA: the driver's interface; libcudart is absent on many compute nodes ---- */

typedef unsigned long long cuda_pointer;

static struct {
    int (*cuInit)(unsigned);
    int (*cuDeviceGetCount)(int *);
    int (*cuDeviceGet)(int *, int);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuMemAlloc)(cuda_pointer *, size_t);
    int (*cuMemFree)(cuda_pointer);
    int (*cuMemcpyHtoD)(cuda_pointer, const void *, size_t);
    int (*cuMemcpyDtoH)(void *, cuda_pointer, size_t);
    int (*cuCtxSynchronize)(void);
    int (*cuGetErrorString)(int, const char **);
} cuda;

#define CUDA(call) cuda_check(cuda.call, #call, __LINE__)

static void cuda_check(int code, const char *call, int line)
{
    if (!code)
        return;
    const char *text = NULL;
    if (cuda.cuGetErrorString)
        cuda.cuGetErrorString(code, &text);
    die(__FILE__, line, "%s: CUDA error %d: %s", call, code, text ? text : "no text");
}

static void *cuda_allocate(size_t bytes)
{
    cuda_pointer pointer;
    CUDA(cuMemAlloc(&pointer, bytes ? bytes : 1));
    return (void *)(uintptr_t)pointer;
}

static void cuda_release(void *memory)
{
    CUDA(cuMemFree((uintptr_t)memory));
}

static void cuda_upload(void *device, const void *host, size_t bytes)
{
    CUDA(cuMemcpyHtoD((uintptr_t)device, host, bytes));
    CUDA(cuCtxSynchronize()); /* small copies from pageable memory return before they land */
}

static void cuda_download(void *host, const void *device, size_t bytes)
{
    CUDA(cuMemcpyDtoH(host, (uintptr_t)device, bytes));
}

/* ---- ROCm ---- */

enum { HIP_HOST_TO_DEVICE = 1, HIP_DEVICE_TO_HOST = 2 };

static struct {
    int (*hipGetDeviceCount)(int *);
    int (*hipSetDevice)(int);
    int (*hipMalloc)(void **, size_t);
    int (*hipFree)(void *);
    int (*hipMemcpy)(void *, const void *, size_t, int);
    int (*hipDeviceSynchronize)(void);
    const char *(*hipGetErrorString)(int);
} hip;

#define HIP(call) hip_check(hip.call, #call, __LINE__)

static void hip_check(int code, const char *call, int line)
{
    if (code)
        die(__FILE__, line, "%s: HIP error %d: %s", call, code, hip.hipGetErrorString(code));
}

static void *hip_allocate(size_t bytes)
{
    void *memory;
    HIP(hipMalloc(&memory, bytes ? bytes : 1));
    return memory;
}

static void hip_release(void *memory)
{
    HIP(hipFree(memory));
}

static void hip_upload(void *device, const void *host, size_t bytes)
{
    HIP(hipMemcpy(device, host, bytes, HIP_HOST_TO_DEVICE));
    HIP(hipDeviceSynchronize());
}

static void hip_download(void *host, const void *device, size_t bytes)
{
    HIP(hipMemcpy(host, device, bytes, HIP_DEVICE_TO_HOST));
}

/* ---- choice ---- */

const struct memory MEMORIES[] = {
    [BUFFERS_HOST] = {"host", host_allocate, free, NULL, NULL},
    [BUFFERS_CUDA] = {"cuda", cuda_allocate, cuda_release, cuda_upload, cuda_download},
    [BUFFERS_ROCM] = {"rocm", hip_allocate, hip_release, hip_upload, hip_download},
};

struct symbol {
    void *slot; /* of a function pointer */
    const char *name;
};

static void bind_library(const char *const *files, const struct symbol *symbols, const char *what)
{
    void *library = NULL;
    for (const char *const *file = files; *file && !library; file++)
        library = dlopen(*file, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        refuse("--buffers %s: no %s on this machine (%s)", what, files[0], dlerror());
    for (; symbols->name; symbols++) {
        void *function = dlsym(library, symbols->name);
        if (!function)
            refuse("--buffers %s: %s has no %s", what, files[0], symbols->name);
        memcpy(symbols->slot, &function, sizeof function);
    }
}

/* The rank's place on its node, from its launcher: a device has to be chosen before MPI_Init,
 * because GPU-aware libraries look at the current device there. */
static int local_rank(void)
{
    static const char *const names[] = {NODE_RANK_VARIABLES, NULL};
    long long place = environment_number(names);
    return place > 0 ? (int)place : 0;
}

static void open_cuda(void)
{
    static const char *const files[] = {"libcuda.so.1", "libcuda.so", NULL};
    const struct symbol symbols[] = {
        {&cuda.cuGetErrorString, "cuGetErrorString"},
        {&cuda.cuInit, "cuInit"},
        {&cuda.cuDeviceGetCount, "cuDeviceGetCount"},
        {&cuda.cuDeviceGet, "cuDeviceGet"},
        {&cuda.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"},
        {&cuda.cuCtxSetCurrent, "cuCtxSetCurrent"},
        {&cuda.cuMemAlloc, "cuMemAlloc_v2"},
        {&cuda.cuMemFree, "cuMemFree_v2"},
        {&cuda.cuMemcpyHtoD, "cuMemcpyHtoD_v2"},
        {&cuda.cuMemcpyDtoH, "cuMemcpyDtoH_v2"},
        {&cuda.cuCtxSynchronize, "cuCtxSynchronize"},
        {NULL, NULL}};
    bind_library(files, symbols, "cuda");
    int code = cuda.cuInit(0), devices = 0, device;
    void *context;
    if (code || cuda.cuDeviceGetCount(&devices) || !devices)
        refuse("--buffers cuda: no CUDA device here (cuInit gave %d)", code);
    CUDA(cuDeviceGet(&device, local_rank() % devices));
    CUDA(cuDevicePrimaryCtxRetain(&context, device));
    CUDA(cuCtxSetCurrent(context));
}

static void open_rocm(void)
{
    static const char *const files[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                        "libamdhip64.so.5", NULL};
    const struct symbol symbols[] = {{&hip.hipGetErrorString, "hipGetErrorString"},
                                     {&hip.hipGetDeviceCount, "hipGetDeviceCount"},
                                     {&hip.hipSetDevice, "hipSetDevice"},
                                     {&hip.hipMalloc, "hipMalloc"},
                                     {&hip.hipFree, "hipFree"},
                                     {&hip.hipMemcpy, "hipMemcpy"},
                                     {&hip.hipDeviceSynchronize, "hipDeviceSynchronize"},
                                     {NULL, NULL}};
    bind_library(files, symbols, "rocm");
    int devices = 0;
    int code = hip.hipGetDeviceCount(&devices);
    if (code || !devices)
        refuse("--buffers rocm: no ROCm device here (hipGetDeviceCount gave %d)", code);
    HIP(hipSetDevice(local_rank() % devices));
}

void open_memory(int buffers)
{
    if (buffers == BUFFERS_CUDA)
        open_cuda();
    else if (buffers == BUFFERS_ROCM)
        open_rocm();
}

/* An MPI that says that it cannot read GPU memory dies in its first memcpy: say so before. */
void warn_of_unaware_mpi(int buffers)
{
    static const char *const names[][2] = {
        [BUFFERS_CUDA] = {"MPIX_Query_cuda_support", NULL},
        [BUFFERS_ROCM] = {"MPIX_Query_rocm_support", "MPIX_Query_hip_support"}};
    for (int i = 0; i < 2 && buffers != BUFFERS_HOST && names[buffers][i]; i++) {
        int (*query)(void) = NULL;
        void *found = dlsym(RTLD_DEFAULT, names[buffers][i]);
        memcpy(&query, &found, sizeof found);
        if (query && !query() && speaker == 0)
            fprintf(stderr,
                    "%s: warning: %s says that this MPI cannot use GPU memory\n", program_name,
                    names[buffers][i]);
    }
}
