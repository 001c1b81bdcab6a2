/* Where calls come from: the innermost return addresses outside of MPI and of what is preloaded. */
#include <execinfo.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "count.h"

enum { DEEP = 24, LIBRARIES_OF_MPI = 64 };

static struct {
    struct {
        uintptr_t from, to;
    } mpi[LIBRARIES_OF_MPI]; /* libraries whose frames are left out */
    size_t count;
    struct trace_site *table;
    pthread_mutex_t lock;
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int note_library(struct dl_phdr_info *info, size_t size, void *nothing)
{
    (void)size, (void)nothing;
    const char *base = strrchr(info->dlpi_name, '/');
    base = base ? base + 1 : info->dlpi_name;
    if (strncmp(base, "libmpi", 6) && strncmp(base, "libompi", 7) && strncmp(base, "libopen-pal", 11))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && sites.count < LIBRARIES_OF_MPI; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            sites.mpi[sites.count].from = from;
            sites.mpi[sites.count++].to = from + info->dlpi_phdr[i].p_memsz;
        }
    return 0;
}

/* The process's map, by which addresses become functions of files. */
void keep_map(struct trace_rank *head)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char *text = NULL, line[PATH_MAX + 128];
    size_t length = 0;
    FILE *out = file ? open_memstream(&text, &length) : NULL;
    while (out && fgets(line, sizeof line, file))
        if (strstr(line, " r-xp "))
            fputs(line, out);
    if (file)
        fclose(file);
    char *room = out && !fclose(out) ? take_room(length + 1, DROPPED_SITES) : NULL;
    if (room) {
        memcpy(room, text, length);
        head->maps = offset_of(room);
        head->maps_bytes = length;
    }
    free(text);
}

/* Before anything is counted; the first backtrace loads the compiler's unwinder. */
void start_sites(void)
{
    void *frames[2];
    backtrace(frames, 2);
    dl_iterate_phdr(note_library, NULL);
    sites.table = take_room(SITES * sizeof *sites.table, DROPPED_SITES);
    process.head->sites = offset_of(sites.table);
}

static bool is_of_mpi(uintptr_t address)
{
    for (size_t i = 0; i < sites.count; i++)
        if (address >= sites.mpi[i].from && address < sites.mpi[i].to)
            return true;
    return false;
}

COLD void count_site(uint64_t routine, uint64_t took, uint64_t bytes)
{
    void *all[DEEP];
    uint64_t frames[SITE_FRAMES] = {0}, digest = routine * 0x9e3779b97f4a7c15u;
    int depth = backtrace(all, DEEP), from = 0;
    while (from < depth && is_of_mpi((uintptr_t)all[from]))
        from++;
    for (int i = 0; i < SITE_FRAMES && from + i < depth; i++) {
        frames[i] = (uint64_t)(uintptr_t)all[from + i];
        digest = (digest ^ frames[i]) * 0x100000001b3u;
    }
    pthread_mutex_lock(&sites.lock);
    for (uint64_t i = 0, at = digest >> 20; sites.table && i < SITES; i++, at++) {
        struct trace_site *site = &sites.table[at % SITES];
        if (!site->calls) {
            site->routine = routine;
            memcpy(site->frames, frames, sizeof frames);
        } else if (site->routine != routine || memcmp(site->frames, frames, sizeof frames))
            continue;
        site->calls++;
        site->ticks += took;
        site->bytes += bytes;
        goto end;
    }
    process.head->dropped |= DROPPED_SITES;
end:
    pthread_mutex_unlock(&sites.lock);
}
