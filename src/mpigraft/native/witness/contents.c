/* Which build of an MPI's libraries is mapped: what nodes are compared by.
 *
 * The linker's build id is in memory (PT_NOTE): no file is read for it. With the size of the file
 * it is a library's content, "ID/SIZE". A library without one has "sha256:SUM". One rank of a node
 * takes that sum, and only where MPIGRAFT_CONTENTS names a folder: the sum is kept in its file
 * HOST.sums by device, inode, size and times, so that the next launch on the node reads no library.
 */
#include <link.h>

#include "rank_record.h"

/* SHA-256 (FIPS 180-4) of a file. */

enum { SHA256_BLOCK = 64, SHA256_HEX = 65 };

static const uint32_t sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotated(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static void sha256_add(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t one = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) +
                       ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha256_constants[i] + w[i];
        uint32_t two = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) +
                       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

/* Of all that `handle` gives from its offset on; false where it cannot be read. */
static bool sha256_of_file(int handle, char hex[SHA256_HEX])
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    static unsigned char buffer[1 << 16]; /* one thread enters MPI */
    uint64_t total = 0;
    size_t held = 0;
    uint32_t state[8];
    memcpy(state, start, sizeof state);
    for (ssize_t got; (got = read(handle, buffer + held, sizeof buffer - held));) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        total += (uint64_t)got;
        held += (size_t)got;
        size_t at = 0;
        for (; held - at >= SHA256_BLOCK; at += SHA256_BLOCK)
            sha256_add(state, buffer + at);
        memmove(buffer, buffer + at, held -= at);
    }
    unsigned char last[2 * SHA256_BLOCK] = {0};
    memcpy(last, buffer, held);
    last[held] = 0x80;
    size_t bytes = held < SHA256_BLOCK - 8 ? SHA256_BLOCK : 2 * SHA256_BLOCK;
    for (int i = 0; i < 8; i++)
        last[bytes - 1 - (size_t)i] = (unsigned char)(8 * total >> (8 * i));
    for (size_t at = 0; at < bytes; at += SHA256_BLOCK)
        sha256_add(state, last + at);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", state[i]);
    return true;
}

/* Whether a file is a part of an MPI: libmpi, what Open MPI has beside it, libfabric, UCX, PSM, and
 * what these open. Graft copies have our name before theirs. */
static bool is_mpi_part(const char *path)
{
    static const char own[] = "mpigraft-";
    static const char *const begin[] = {"libmpi", "libopen-", "libfabric", "libuc", "libpsm",
                                        "mca_"};
    const char *name = strrchr(path, '/') + 1;
    if (!strncmp(name, own, sizeof own - 1))
        name += sizeof own - 1;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (!strncmp(name, begin[i], strlen(begin[i])))
            return strncmp(name, "libmpigraft", 11);
    return strstr(name, "-fi.so");
}

/* The id in the notes of an object; false where they have none, or are not in memory. */
static bool read_id(const struct dl_phdr_info *object, const ElfW(Phdr) *notes,
                    char id[2 * MOST_ID + 1])
{
    bool loaded = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        loaded |= segment->p_type == PT_LOAD && notes->p_vaddr >= segment->p_vaddr &&
                  notes->p_vaddr + notes->p_filesz <= segment->p_vaddr + segment->p_filesz;
    }
    const char *at = (const char *)(object->dlpi_addr + notes->p_vaddr);
    for (size_t left = loaded ? notes->p_filesz : 0; left >= sizeof(ElfW(Nhdr));) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        size_t name = sizeof note + ((note.n_namesz + 3) & ~(size_t)3);
        size_t whole = name + ((note.n_descsz + 3) & ~(size_t)3);
        if (whole > left)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            !memcmp(at + sizeof note, "GNU", 4) && note.n_descsz && note.n_descsz <= MOST_ID) {
            for (size_t i = 0; i < note.n_descsz; i++)
                snprintf(id + 2 * i, 3, "%02x", (unsigned char)at[name + i]);
            return true;
        }
        at += whole;
        left -= whole;
    }
    return false;
}

/* For dl_iterate_phdr: give the rows of `data` that this object's segments lie in its id. */
static int note_id(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    const struct mapped_list *list = data;
    struct mapped *row = NULL;
    for (int i = 0; i < object->dlpi_phnum && !row; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
        for (size_t n = 0; segment->p_type == PT_LOAD && n < list->count && !row; n++)
            if (list->rows[n].from < begin + segment->p_memsz && list->rows[n].to > begin)
                row = &list->rows[n];
    }
    for (int i = 0; row && i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_NOTE &&
            read_id(object, &object->dlpi_phdr[i], row->id))
            break;
    return 0;
}

/* `,"contents":{PATH:"ID/SIZE",...}` of the parts of an MPI that have an id. */
void write_contents(FILE *out, const struct mapped_list *list)
{
    const char *comma = "";
    dl_iterate_phdr(note_id, (void *)(uintptr_t)list);
    fputs(",\"contents\":{", out);
    for (size_t i = 0; i < list->count; i++) {
        const struct mapped *row = &list->rows[i];
        if (!*row->id || !is_mpi_part(row->path))
            continue;
        fputs(comma, out);
        json_string(out, row->path);
        fprintf(out, ":\"%s/%lld\"", row->id, (long long)row->status.st_size);
        comma = ",";
    }
    putc('}', out);
}

/* The sum of a file out of `sums`, else of its bytes, which is then added there. */
static bool find_sum(const struct mapped *row, FILE *sums, char hex[SHA256_HEX])
{
    char key[160], line[300];
    struct stat now;
    const struct stat *own = &row->status;
    snprintf(key, sizeof key, "%llu:%llu:%lld:%lld.%09ld:%lld.%09ld ",
             (unsigned long long)own->st_dev, (unsigned long long)own->st_ino,
             (long long)own->st_size, (long long)own->st_mtim.tv_sec, own->st_mtim.tv_nsec,
             (long long)own->st_ctim.tv_sec, own->st_ctim.tv_nsec);
    if (sums)
        rewind(sums);
    while (sums && fgets(line, sizeof line, sums))
        if (!strncmp(line, key, strlen(key)) && strlen(line) == strlen(key) + SHA256_HEX)
            return memcpy(hex, line + strlen(key), SHA256_HEX - 1), hex[SHA256_HEX - 1] = 0, true;
    int handle = open(row->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (handle < 0)
        return false;
    bool read_all = !fstat(handle, &now) && S_ISREG(now.st_mode) && now.st_dev == own->st_dev &&
                    now.st_ino == own->st_ino && sha256_of_file(handle, hex);
    close(handle);
    if (read_all && sums && !fseek(sums, 0, SEEK_END) && ftell(sums) < MOST_SUMS)
        fprintf(sums, "%s%s\n", key, hex);
    return read_all;
}

/* `,"sums":{PATH:"sha256:SUM",...}` of those that have none. */
void write_sums(FILE *out, const char *host, const struct mapped_list *list)
{
    const char *folder = getenv("MPIGRAFT_CONTENTS"), *comma = "";
    char path[4600];
    if (!folder || !*folder)
        return;
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/%s.sums", folder, host);
    int handle = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *sums = handle < 0 ? NULL : fdopen(handle, "a+");
    fputs(",\"sums\":{", out);
    for (size_t i = 0; i < list->count; i++) {
        const struct mapped *row = &list->rows[i];
        char hex[SHA256_HEX];
        if (*row->id || !row->status.st_ino || !is_mpi_part(row->path) ||
            !find_sum(row, sums, hex))
            continue;
        fputs(comma, out);
        json_string(out, row->path);
        fprintf(out, ":\"sha256:%s\"", hex);
        comma = ",";
    }
    putc('}', out);
    if (sums)
        fclose(sums);
    else if (handle >= 0)
        close(handle);
}
