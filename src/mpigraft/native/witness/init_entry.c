/* What a process notes before it enters MPI: a job may fail or hang inside of MPI_Init, and then
 * nothing else says which libmpi was loaded. rank_record.h says where it is written. */
#include "rank_record.h"

static bool is_mpi(const char *path)
{
    const char *base = strrchr(path, '/') + 1;
    return !strncmp(base, "libmpi", 6) && strncmp(base, "libmpigraft", 11);
}

static void write_entered(FILE *out, const char *host)
{
    const char *search = getenv("LD_LIBRARY_PATH");
    struct mapped_list list = list_mapped(is_mpi);
    fprintf(out, "\n{\"id\":\"%016llx\",\"pid\":%ld,\"host\":", process_id(), (long)getpid());
    json_string(out, host);
    write_task(out, false);
    fputs(",\"program\":", out);
    write_program(out);
    fputs(",\"search\":", out);
    json_string(out, search ? search : "");
    fputs(",\"libraries\":[", out);
    for (size_t i = 0, written = 0; i < list.count; i++) {
        if (!i || by_path(&list.rows[i - 1], &list.rows[i])) {
            fputs(written++ ? ",[" : "[", out);
            json_string(out, list.rows[i].path);
            fprintf(out, ",%llu,%llu]", list.rows[i].device, list.rows[i].inode);
        }
    }
    fputs("]}\n", out);
    free_mapped(list);
}

/* What cannot be written here is no loss unless MPI_Init fails, so nothing is said of it. */
void announce(const char *folder)
{
    char host[256] = "", boot[64], node[128], path[4600];
    gethostname(host, sizeof host - 1);
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    name_node(host, boot, node, sizeof node);
    struct text line;
    if (snprintf(path, sizeof path, "%s/%s.entered", folder, node) >= (int)sizeof path ||
        !open_text(&line))
        return;
    write_entered(line.out, host);
    if (end_text(&line))
        (void)append(path, &line);
    free(line.bytes);
}
