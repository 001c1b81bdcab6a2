/* A child of MPI_Comm_spawn that enters another MPI than its parents' never joins them, and they wait
 * for it: the job is ended, before the child starts, or before it enters. */
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include "other_mpi.h"
#include "rank_record.h"

/* The MPI behind what is preloaded, asked without its header: handles of three ABIs. */

function real_or_end(const char *name)
{
    function result = real(name);
    if (result)
        return result;
    fprintf(stderr, "mpigraft-witness: the program calls %s, but no MPI library has it\n", name);
    _exit(127);
}

enum {
    MPICH_COMM_WORLD = 0x44000000,
    MPICH_COMM_NULL = 0x04000000,
    MPICH_INFO_NULL = 0x1c000000,
    STANDARD_COMM_WORLD = 0x101,
    STANDARD_COMM_NULL = 0x100,
    STANDARD_INFO_NULL = 0x130,
};

void *handle_of(unsigned number)
{
    return (void *)(uintptr_t)number;
}

struct mpi which_mpi(void)
{
    void *world = open_mpi_object("ompi_mpi_comm_world");
    if (world)
        return (struct mpi){POINTERS, world, open_mpi_object("ompi_mpi_comm_null"),
                            open_mpi_object("ompi_mpi_info_null")};
    function init = real("PMPI_Init");
    void *address;
    memcpy(&address, &init, sizeof address);
    Dl_info where;
    const char *base = NULL;
    if (address && dladdr(address, &where) && where.dli_fname) {
        base = strrchr(where.dli_fname, '/');
        base = base ? base + 1 : where.dli_fname;
    }
    if (base && !strncmp(base, "libmpi_abi", 10))
        return (struct mpi){POINTERS, handle_of(STANDARD_COMM_WORLD),
                            handle_of(STANDARD_COMM_NULL), handle_of(STANDARD_INFO_NULL)};
    return (struct mpi){INTS, handle_of(MPICH_COMM_WORLD), handle_of(MPICH_COMM_NULL),
                        handle_of(MPICH_INFO_NULL)};
}

int ask_int(const char *name, struct mpi mpi, void *handle)
{
    function ask = real(name);
    int answer = -1;
    if (!ask)
        return answer;
    int code = mpi.abi == POINTERS
                   ? ((int (*)(void *, int *))ask)(handle, &answer)
                   : ((int (*)(int, int *))ask)((int)(uintptr_t)handle, &answer);
    return code ? -1 : answer;
}

/* The value of `key` in an MPI_Info, of at most `length` characters; false: it has none. */
bool ask_info(struct mpi mpi, void *info, const char *key, char *value, int length)
{
    function ask = real("PMPI_Info_get");
    int there = 0, code = 1;
    if (!ask || (mpi.abi == POINTERS ? info == mpi.no_info
                                     : (int)(uintptr_t)info == (int)(uintptr_t)mpi.no_info))
        return false;
    if (mpi.abi == POINTERS)
        code = ((int (*)(void *, const char *, int, char *, int *))ask)(info, key, length, value,
                                                                        &there);
    else
        code = ((int (*)(int, const char *, int, char *, int *))ask)((int)(uintptr_t)info, key,
                                                                     length, value, &there);
    return !code && there;
}

#define OTHER_MPI "ranks have another MPI:"

/* For `mpigraft run`, which makes a finding of it. */
static void note_refusal(const char *code, const char *why, const char *what)
{
    const char *folder = getenv("MPIGRAFT_WITNESS");
    char path[SPAWN_PATH];
    struct text line;
    fprintf(stderr, "mpigraft-witness: MPI_Comm_spawn: %s %s\n", why, what);
    if (folder && *folder && open_text(&line)) {
        fprintf(line.out, "{\"code\":\"%s\",\"what\":", code);
        json_string(line.out, what);
        fputs("}\n", line.out);
        if (end_text(&line) &&
            snprintf(path, sizeof path, "%s/%016llx.refused", folder, process_id()) < SPAWN_PATH)
            (void)append(path, &line);
    }
}

/* End the job: its launcher would wait forever for a child that never enters MPI (PRRTE 3.0.13,
 * hydra of MPICH 5.0.2). hydra also waits for the other ranks of podman where one only exits. */
void refuse(const char *code, const char *why, const char *what)
{
    function end = real("PMPI_Abort");
    struct mpi mpi = which_mpi();
    note_refusal(code, why, what);
    if (end && mpi.abi == POINTERS)
        ((int (*)(void *, int))end)(mpi.world, REFUSED);
    else if (end)
        ((int (*)(int, int))end)((int)(uintptr_t)mpi.world, REFUSED);
    _exit(REFUSED);
}

/* The first segment of a type, and with `address` in it unless that is 0, of an ELF program of this
 * process's kind of machine. */
static bool find_segment(int file, unsigned type, ElfW(Addr) address, ElfW(Phdr) * part)
{
    ElfW(Ehdr) head;
    if (pread(file, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_phentsize != sizeof *part)
        return false;
    for (int i = 0; i < head.e_phnum; i++) {
        off_t at = (off_t)head.e_phoff + i * (off_t)sizeof *part;
        if (pread(file, part, sizeof *part, at) == (ssize_t)sizeof *part &&
            part->p_type == type && (!address || address - part->p_vaddr < part->p_filesz))
            return true;
    }
    return false;
}

/* The loader of a program; empty: it names none. */
void loader_in(int file, char *name)
{
    ElfW(Phdr) part;
    if (find_segment(file, PT_INTERP, 0, &part) && part.p_filesz < SPAWN_PATH)
        (void)!pread(file, name, part.p_filesz, (off_t)part.p_offset);
}

/* Whether a library is of an MPI that ranks of this one cannot start. MPICH, and all that have its
 * ABI, call theirs libmpi*.so.12; Open MPI's numbers are 20 and 40. */
static bool of_other_mpi(const char *library)
{
    const char *number = strstr(library, ".so.");
    if (strncmp(library, "libmpi", 6) || !number)
        return false;
    if (open_mpi_object("ompi_mpi_comm_world"))
        return !strcmp(number, ".so.12");
    return !strcmp(library, "libmpi.so.40") || !strcmp(library, "libmpi.so.20");
}

/* A child that enters another MPI than its launcher's never joins its parents, who wait. */
void refuse_other_mpi(int file, const char *command)
{
    char name[SPAWN_PATH], text[2 * SPAWN_PATH];
    ElfW(Phdr) dynamic, part;
    ElfW(Dyn) row;
    off_t names = 0;
    if (!find_segment(file, PT_DYNAMIC, 0, &dynamic))
        return;
    for (int pass = 0; pass < 2; pass++) /* DT_STRTAB follows the names that it has */
        for (size_t at = 0; at < dynamic.p_filesz; at += sizeof row) {
            if (pread(file, &row, sizeof row, (off_t)(dynamic.p_offset + at)) != sizeof row)
                return;
            if (row.d_tag == DT_STRTAB && find_segment(file, PT_LOAD, row.d_un.d_ptr, &part))
                names = (off_t)(row.d_un.d_ptr - part.p_vaddr + part.p_offset);
            if (!pass || row.d_tag != DT_NEEDED || !names)
                continue;
            memset(name, 0, sizeof name);
            (void)!pread(file, name, sizeof name - 1, names + (off_t)row.d_un.d_val);
            if (!of_other_mpi(name))
                continue;
            snprintf(text, sizeof text, "%s needs %s", command, name);
            refuse("spawn-other-mpi", OTHER_MPI, text);
        }
}

/* Before a child enters an MPI that it opened, or that a script before it chose: of another one than
 * the ranks' nobody could know before it started. Its parent waits in MPI_Comm_spawn, and
 * only a signal ends that. Processes below the child may enter what they like: others may join. */
void refuse_opened_mpi(void)
{
    const char *parent = getenv("MPIGRAFT_SPAWN_PARENT"), *ranks = getenv("MPIGRAFT_SPAWN_LIBRARY");
    long pid = parent ? atol(parent) : 0;
    char program[SPAWN_PATH], text[2 * SPAWN_PATH];
    if (pid <= 1 || !ranks || !*ranks || !is_own_task() || !of_other_mpi(ranks))
        return;
    name_program(program, sizeof program);
    snprintf(text, sizeof text, "%s enters another one than %s", program, ranks);
    note_refusal("spawn-other-mpi", OTHER_MPI, text);
    kill((pid_t)pid, SIGKILL);
    _exit(REFUSED);
}
