/* What a rank tells of itself: one line of its node's file, appended by one write.
 *
 * FOLDER/HOST-NODE.ranks has a JSON object per rank of a node. What the ranks of a node have in
 * common (world size, MPI, mapped files) is some ten kilobytes, so one rank of each kind tells
 * it and the others name it by its digest: whoever reads the file reads it once per node, not
 * once per rank. Who tells is settled by an empty file, HOST-NODE-DIGEST.map, which only one can
 * make. A file per node and not one for all, because nodes that append to one file of a file
 * server overwrite each other: O_APPEND holds among the processes of one client alone (open(2)).
 *
 * FOLDER/HOST-NODE.entered has a line of each process that is about to enter MPI: the MPI
 * libraries that are mapped and why they may be. Of one that comes back out of MPI_Init the other
 * file has a line too, with the same `id`; the others are those that ended inside of it.
 *
 * In both files a line says which process of the launch it is about (task.h).
 */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/sysmacros.h>

#include "rank_record.h"

bool open_text(struct text *text)
{
    *text = (struct text){NULL, 0, NULL};
    text->out = open_memstream(&text->bytes, &text->length);
    return text->out;
}

bool end_text(struct text *text)
{
    bool whole = !ferror(text->out);
    return !fclose(text->out) && whole;
}

/* ---- files that are mapped ---- */

int by_path(const void *a, const void *b)
{
    const struct mapped *one = a, *two = b;
    int order = strcmp(one->path, two->path);
    if (order)
        return order;
    if (one->inode != two->inode)
        return one->inode < two->inode ? -1 : 1;
    return (one->device > two->device) - (one->device < two->device);
}

/* Files mapped for execution: the program and its libraries. The kernel's map is asked, not the
 * loader: it has the identity of what was mapped, even if the file was replaced. Device numbers
 * are those of stat, which is what others compare with; some file systems (btrfs, overlays) show
 * a different one in the map. Sorted, since addresses differ from rank to rank. */
struct mapped_list list_mapped(bool (*wanted)(const char *path))
{
    FILE *maps = fopen("/proc/self/maps", "re");
    struct mapped_list list = {NULL, 0};
    char *line = NULL;
    size_t room = 0, most = 0;
    while (maps && getline(&line, &room, maps) > 0) {
        struct mapped row = {.status.st_ino = 0};
        char mode[5];
        unsigned major_, minor_;
        int at = 0;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %x:%x %llu %n", &row.from, &row.to,
                   mode, &major_, &minor_, &row.inode, &at) < 6)
            continue;
        char *path = line + at;
        path[strcspn(path, "\n")] = 0;
        if (mode[2] != 'x' || path[0] != '/' || (wanted && !wanted(path)) ||
            (list.count && !strcmp(path, list.rows[list.count - 1].path)))
            continue;
        if (list.count == most) {
            struct mapped *more = realloc(list.rows, (most = 2 * most + 64) * sizeof *list.rows);
            if (!more)
                break;
            list.rows = more;
        }
        if (stat(path, &row.status) || row.status.st_ino != row.inode)
            memset(&row.status, 0, sizeof row.status);
        row.device = row.status.st_ino ? row.status.st_dev : makedev(major_, minor_);
        if (!(row.path = strdup(path)))
            break;
        list.rows[list.count++] = row;
    }
    free(line);
    if (maps)
        fclose(maps);
    if (list.count)
        qsort(list.rows, list.count, sizeof *list.rows, by_path);
    return list;
}

void free_mapped(struct mapped_list list)
{
    while (list.count)
        free(list.rows[--list.count].path);
    free(list.rows);
}

/* `libraries` into `common` as [path, disk, inode], and the device numbers of the disks, in the
 * order of their first use, into `own`: containers of one node mount one image under numbers
 * that differ from rank to rank. */
static void write_libraries(FILE *common, FILE *own, struct mapped_list list)
{
    size_t disks = 0;
    unsigned long long *devices = calloc(list.count ? list.count : 1, sizeof *devices);
    fputs(",\"libraries\":[", common);
    for (size_t i = 0; devices && i < list.count; i++) {
        if (i && !by_path(&list.rows[i - 1], &list.rows[i]))
            continue;
        size_t disk = 0;
        while (disk < disks && devices[disk] != list.rows[i].device)
            disk++;
        if (disk == disks)
            devices[disks++] = list.rows[i].device;
        fputs(i ? ",[" : "[", common);
        json_string(common, list.rows[i].path);
        fprintf(common, ",%zu,%llu]", disk, list.rows[i].inode);
    }
    putc(']', common);
    fputs(",\"disks\":[", own);
    for (size_t disk = 0; disk < disks; disk++)
        fprintf(own, "%s%llu", disk ? "," : "", devices[disk]);
    putc(']', own);
    free(devices);
}

/* The file that this process runs. */
void name_program(char *program, size_t room)
{
    ssize_t length = readlink("/proc/self/exe", program, room - 1);
    program[length > 0 ? length : 0] = 0;
}

void write_program(FILE *out)
{
    char program[4096];
    name_program(program, sizeof program);
    json_string(out, program);
}

/* ---- what is a rank's own ---- */

/* CPUs as the kernel lists them: "0-3,8". */
static void write_cores(FILE *out)
{
    enum { MOST = 1 << 16 };
    size_t bytes = CPU_ALLOC_SIZE(MOST);
    cpu_set_t *cores = CPU_ALLOC(MOST);
    bool known = cores && !sched_getaffinity(0, bytes, cores);
    const char *comma = "";
    fputs(",\"cores\":\"", out);
    for (size_t core = 0, first = 0; known && core < MOST; core++) {
        if (!CPU_ISSET_S(core, bytes, cores))
            continue;
        if (!core || !CPU_ISSET_S(core - 1, bytes, cores))
            first = core;
        if (core + 1 < MOST && CPU_ISSET_S(core + 1, bytes, cores))
            continue;
        fprintf(out, first < core ? "%s%zu-%zu" : "%s%zu", comma, first, core);
        comma = ",";
    }
    putc('"', out);
    CPU_FREE(cores);
}

/* Every variable that says which GPUs a rank may use: CUDA_, HIP_, ROCR_VISIBLE_DEVICES and
 * their kin. */
static void write_gpus(FILE *out)
{
    static const char tail[] = "_VISIBLE_DEVICES";
    size_t count = 0;
    for (char **entry = environ; entry && *entry; entry++) {
        size_t name = strcspn(*entry, "="), length = sizeof tail - 1;
        if (name <= length || strncmp(*entry + name - length, tail, length))
            continue;
        fputs(count++ ? "," : ",\"gpus\":[", out);
        json_string(out, *entry);
    }
    if (count)
        putc(']', out);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Files of network devices that are open: what the transport really took. Names by the drivers:
 * cxi (Slingshot), infiniband (verbs, EFA), hfi1 (Omni-Path), kgni (Gemini and Aries). */
static bool network_device(const char *path)
{
    static const char *const begin[] = {"/dev/cxi", "/dev/infiniband/", "/dev/hfi1_", "/dev/kgni"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (!strncmp(path, begin[i], strlen(begin[i])))
            return true;
    return false;
}

static void write_devices(FILE *out)
{
    enum { MOST = 64 };
    char *found[MOST];
    size_t count = 0;
    DIR *files = opendir("/proc/self/fd");
    struct dirent *entry;
    while (files && count < MOST && (entry = readdir(files))) {
        char path[256];
        ssize_t length = readlinkat(dirfd(files), entry->d_name, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        if (network_device(path) && (found[count] = strdup(path)))
            count++;
    }
    if (files)
        closedir(files);
    if (count)
        qsort(found, count, sizeof *found, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i && !strcmp(found[i - 1], found[i]))
            continue;
        fputs(i ? "," : ",\"devices\":[", out);
        json_string(out, found[i]);
    }
    if (count)
        putc(']', out);
    while (count)
        free(found[--count]);
}

/* ---- what is a node's ---- */

/* CPUs of each NUMA node, {"0":"0-3"}: a constant of the node, so that only one rank looks. */
static void write_numa(FILE *out)
{
    static const char home[] = "/sys/devices/system/node";
    DIR *nodes = opendir(home);
    struct dirent *entry;
    const char *comma = "";
    fputs(",\"numa\":{", out);
    while (nodes && (entry = readdir(nodes))) {
        char path[400], cores[4096], *end;
        if (strncmp(entry->d_name, "node", 4) || !isdigit((unsigned char)entry->d_name[4]))
            continue;
        unsigned long number = strtoul(entry->d_name + 4, &end, 10);
        snprintf(path, sizeof path, "%s/%s/cpulist", home, entry->d_name);
        read_line(path, cores, sizeof cores);
        if (*end || !cores[0])
            continue; /* a node of memory alone: of a GPU, or CXL */
        fprintf(out, "%s\"%lu\":", comma, number);
        json_string(out, cores);
        comma = ",";
    }
    putc('}', out);
    if (nodes)
        closedir(nodes);
}

/* ---- the file ---- */

/* Whether this rank is the first on its node that has this in common with others. A file system
 * that cannot say so gets it from every rank. */
static bool is_first(const char *marker)
{
    int handle = open(marker, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (handle < 0)
        return errno != EEXIST;
    close(handle);
    return true;
}

/* One write, so that lines of ranks that write at once do not mix. What a full disk cut short
 * is a torn line: the next one begins with a newline for its sake. */
bool append(const char *path, const struct text *line)
{
    int handle = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (handle < 0)
        return false;
    (void)!fchmod(handle, 0644); /* despite the umask: others of this launch read it */
    ssize_t written;
    do
        written = write(handle, line->bytes, line->length);
    while (written < 0 && errno == EINTR);
    int reason = written < 0 ? errno : (size_t)written < line->length ? ENOSPC : 0;
    if (close(handle) && !reason) /* a file server may tell only now */
        reason = errno;
    errno = reason;
    return !reason;
}

/* `common` and `line` are open; both are closed here in any case. */
static bool write_line(const char *folder, const char *host, struct place place,
                       const char *version, struct mapped_list list, struct text *common,
                       struct text *line)
{
    char boot[64], node[128], path[4600], marker[4600], identity[24];
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    fprintf(common->out, "\"size\":%d,\"library_version\":", place.size);
    json_string(common->out, version);
    fputs(",\"program\":", common->out);
    write_program(common->out);
    fprintf(line->out, "\n{\"rank\":%d,\"pid\":%ld,\"id\":\"%016llx\"", place.rank,
            (long)getpid(), process_id());
    write_task(line->out, place.spawned);
    write_libraries(common->out, line->out, list);
    write_contents(common->out, &list);
    write_cores(line->out);
    write_gpus(line->out);
    write_devices(line->out);
    bool whole = end_text(common);
    name_node(host, boot, node, sizeof node);
    snprintf(identity, sizeof identity, "%016llx", digest_of(common->bytes, common->length));
    int room = (int)sizeof path;
    if (!whole || snprintf(path, sizeof path, "%s/%s.ranks", folder, node) >= room ||
        snprintf(marker, sizeof marker, "%s/%s-%s.map", folder, node, identity) >= room)
        return fclose(line->out), errno = whole ? ENAMETOOLONG : ENOMEM, false;
    fprintf(line->out, ",\"map\":\"%s\"", identity);
    bool first = is_first(marker);
    if (first) {
        fprintf(line->out, ",%s,\"host\":", common->bytes);
        json_string(line->out, host);
        fputs(",\"boot\":", line->out);
        json_string(line->out, boot);
        write_numa(line->out);
        write_sums(line->out, host, &list);
    }
    fputs("}\n", line->out);
    if (!end_text(line))
        return errno = ENOMEM, false;
    bool written = append(path, line);
    int reason = errno;
    if (!written && first)
        unlink(marker); /* a rank that is yet to come may have more luck */
    errno = reason;
    return written;
}

void testify(const char *folder, struct place place, const char *version)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    struct text common, line;
    struct mapped_list list = list_mapped(NULL);
    bool written = false;
    if (open_text(&common)) {
        if (open_text(&line)) {
            written = write_line(folder, host, place, version, list, &common, &line);
            free(line.bytes);
        } else
            fclose(common.out);
        free(common.bytes);
    }
    free_mapped(list);
    if (!written)
        fprintf(stderr, "mpigraft-witness: %s: no record of rank %d in %s: %s\n", host, place.rank,
                folder, strerror(errno));
}
