/* Which process of a launch this is, and on which node. */
#ifndef MPIGRAFT_PRELOAD_TASK_H
#define MPIGRAFT_PRELOAD_TASK_H

#include <stdbool.h>
#include <stdio.h>

#include "../common/rank_variables.h"

enum { NAMES_OF_CONNECTION = 4, DIGEST_ROOM = 9, MOST_ABOVE = 32 };

enum {
    CONNECTIONS = sizeof(const char *[][NAMES_OF_CONNECTION]){CONNECTION_VARIABLES} /
                  sizeof(const char *[NAMES_OF_CONNECTION])
};

/* A digest for each way to connect, "-" without one. */
struct connections {
    char digests[CONNECTIONS][DIGEST_ROOM];
};

unsigned long long digest_of(const char *bytes, size_t length);
unsigned long long process_id(void);
void read_line(const char *path, char *text, size_t room);
void name_node(const char *host, const char *boot, char *name, size_t room);
const struct connections *own_connections(void);
bool is_own_task(void);
void write_task(FILE *out, bool spawned);

#endif
