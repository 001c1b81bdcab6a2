/* How much memory a node has left for us: what the kernel says and what the job may take. */
#ifndef MPIGRAFT_LIMITS_H
#define MPIGRAFT_LIMITS_H

#include <stdio.h>
#include <string.h>

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
static double memory_for_buffers(void)
{
    double machine = memory_available(), group = memory_of_cgroup();
    return 0.75 * (machine < group ? machine : group);
}

#endif
