/* Numbers for handles: the smallest that is free, so that steps that make and free the same
 * objects get the same numbers. Several requests that were complete at once may have one handle:
 * a number each. */
#ifndef MPIGRAFT_TRACE_IDS_H
#define MPIGRAFT_TRACE_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct known {
    uint64_t handle;
    uint32_t id; /* 0: a free entry */
    uint32_t wild; /* not 0: a receive from any source, or of any tag; which kind of */
};

struct ids {
    struct known *entries; /* open addressing by the handle */
    size_t room, used;
    uint8_t *taken; /* by id */
    uint32_t most, lowest;
};

static inline size_t home_of(const struct ids *ids, uint64_t handle)
{
    return (size_t)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 20) % ids->room;
}

static inline bool put_known(struct ids *ids, struct known known)
{
    if (ids->used * 2 >= ids->room) {
        struct ids old = *ids;
        ids->room = old.room ? 2 * old.room : 64;
        ids->entries = calloc(ids->room, sizeof *ids->entries);
        if (!ids->entries) {
            *ids = old;
            return false;
        }
        ids->used = 0;
        for (size_t i = 0; i < old.room; i++)
            if (old.entries[i].id)
                put_known(ids, old.entries[i]);
        free(old.entries);
    }
    size_t at = home_of(ids, known.handle);
    while (ids->entries[at].id)
        at = (at + 1) % ids->room;
    ids->entries[at] = known;
    ids->used++;
    return true;
}

/* The entry of a handle; NULL: it has none. */
static inline struct known *find_known(const struct ids *ids, uint64_t handle)
{
    for (size_t at = ids->room ? home_of(ids, handle) : 0; ids->room && ids->entries[at].id;
         at = (at + 1) % ids->room)
        if (ids->entries[at].handle == handle)
            return &ids->entries[at];
    return NULL;
}

/* Take an entry out; its number stays taken. An id of 0: there was none. */
static inline struct known take_known(struct ids *ids, uint64_t handle)
{
    struct known *entry = find_known(ids, handle);
    if (!entry)
        return (struct known){handle, 0, 0};
    struct known known = *entry;
    size_t hole = (size_t)(entry - ids->entries);
    for (size_t at = (hole + 1) % ids->room; ids->entries[at].id; at = (at + 1) % ids->room) {
        size_t home = home_of(ids, ids->entries[at].handle);
        if ((at - home + ids->room) % ids->room >= (at - hole + ids->room) % ids->room) {
            ids->entries[hole] = ids->entries[at];
            hole = at;
        }
    }
    ids->entries[hole] = (struct known){0, 0, 0};
    ids->used--;
    return known;
}

/* A number for a new handle; 0: there is no memory. */
static inline uint32_t new_id(struct ids *ids, uint64_t handle, uint32_t wild)
{
    uint32_t id = ids->lowest ? ids->lowest : 1;
    while (id < ids->most && ids->taken[id])
        id++;
    if (id >= ids->most) {
        uint32_t most = ids->most ? 2 * ids->most : 64;
        uint8_t *more = realloc(ids->taken, most);
        if (!more)
            return 0;
        for (uint32_t i = ids->most; i < most; i++)
            more[i] = 0;
        ids->taken = more;
        ids->most = most;
    }
    ids->taken[id] = 1;
    ids->lowest = id + 1;
    return put_known(ids, (struct known){handle, id, wild}) ? id : 0;
}

static inline void free_id(struct ids *ids, uint32_t id)
{
    if (id && id < ids->most) {
        ids->taken[id] = 0;
        if (id < ids->lowest)
            ids->lowest = id;
    }
}

#endif
