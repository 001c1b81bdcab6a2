/* What a process writes of itself and of its MPI. */
#ifndef MPIGRAFT_WITNESS_RANK_RECORD_H
#define MPIGRAFT_WITNESS_RANK_RECORD_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/json.h"
#include "../preload/task.h"

enum { MOST_ID = 32, MOST_SUMS = 1 << 20 };

/* A file that is mapped for execution. */
struct mapped {
    char *path;
    unsigned long long device, inode;
    uintptr_t from, to;
    struct stat status; /* of the file at `path`, if that is what is mapped; else its inode is 0 */
    char id[2 * MOST_ID + 1];
};

struct mapped_list {
    struct mapped *rows;
    size_t count;
};

struct place {
    int rank, size;
    bool spawned;
};

/* Text that grows as it is printed. */
struct text {
    char *bytes;
    size_t length;
    FILE *out;
};

/* contents.c */
void write_contents(FILE *out, const struct mapped_list *list);
void write_sums(FILE *out, const char *host, const struct mapped_list *list);

/* rank_record.c */
bool open_text(struct text *text);
bool end_text(struct text *text);
int by_path(const void *a, const void *b);
struct mapped_list list_mapped(bool (*wanted)(const char *path));
void free_mapped(struct mapped_list list);
void name_program(char *program, size_t room);
void write_program(FILE *out);
bool append(const char *path, const struct text *line);
void testify(const char *folder, struct place place, const char *version);

/* init_entry.c */
void announce(const char *folder);

#endif
