/* Reductions whose result all ranks know: predefined operations on predefined numbers. */
#ifndef MPIGRAFT_REPLAY_SUMS_H
#define MPIGRAFT_REPLAY_SUMS_H

#include "data_check.h"

enum number_kind { NO_NUMBER, WHOLE, REAL };
enum { PERIOD = 5 }; /* elements repeat after so many */

static enum number_kind kind_of(int64_t type)
{
    static const char *const names[] = {
#define TYPE(name, end) #name,
        PREDEFINED_TYPES(TYPE)
#undef TYPE
    };
    static const char whole[] =
        " SIGNED_CHAR UNSIGNED_CHAR SHORT UNSIGNED_SHORT INT UNSIGNED LONG UNSIGNED_LONG LONG_LONG "
        "UNSIGNED_LONG_LONG INT8_T INT16_T INT32_T INT64_T UINT8_T UINT16_T UINT32_T UINT64_T AINT "
        "OFFSET COUNT INTEGER INTEGER1 INTEGER2 INTEGER4 INTEGER8 ";
    static const char real[] = " FLOAT DOUBLE REAL DOUBLE_PRECISION REAL4 REAL8 ";
    const char *name = type < 0 ? names[-1 - type] : "";
    return one_of(name, whole) ? WHOLE : one_of(name, real) ? REAL : NO_NUMBER;
}

static int64_t element_of(int64_t rank, int64_t at, uint64_t number)
{
    return 1 + (rank * 7 + at * 3 + (int64_t)(number % 5)) % PERIOD;
}

/* The place of an operation in PREDEFINED_OPS. */
enum { OP_MAX, OP_MIN, OP_SUM, OP_PROD };

static int64_t combined(int64_t op, int64_t from, int64_t to, int64_t at, uint64_t number)
{
    int64_t result = op == OP_PROD ? 1 : element_of(from, at, number);
    for (int64_t rank = from; rank < to; rank++) {
        int64_t one = element_of(rank, at, number);
        switch (op) {
        case OP_MAX: result = one > result ? one : result; break;
        case OP_MIN: result = one < result ? one : result; break;
        case OP_SUM: result += rank == from ? 0 : one; break;
        default: result = (int64_t)((uint64_t)result * (uint64_t)(rank ? 1 : one));
        }
    }
    return result;
}

static void put_number(char *memory, int64_t at, int64_t size, enum number_kind kind, int64_t value)
{
    float single = (float)value;
    double twofold = (double)value;
    const void *from = kind == WHOLE ? (const void *)&value : size == 4 ? (void *)&single : (void *)&twofold;
    memcpy(memory + at * size, from, (size_t)size);
}

static bool is_reduction(const char *stem)
{
    return one_of(stem, " allreduce reduce reduce_scatter reduce_scatter_block scan ");
}

/* Whether the sum of a call is known. */
static bool has_known_sum(const struct call *call, const char *stem)
{
    int64_t op = -1 - field_of(call, "op", 0), type = field_of(call, "datatype", 0);
    return is_reduction(stem) && op >= OP_MAX && op <= OP_PROD && kind_of(type) &&
           type_of(type)->size <= 8;
}

/* A rank's numbers: in a product those of other ranks than the first are 1. */
static void fill_sum(const struct call *call, const struct communicator *comm, uint64_t number,
                     char *const buffers[2])
{
    int64_t type = field_of(call, "datatype", 0), op = -1 - field_of(call, "op", 0);
    int side = call->fields[call->buffers[0]].value == 1; /* in place: the other */
    int at = call->buffers[side];
    if (at < 0)
        return;
    blocks_of_buffer(call, side ? "sendbuf" : call->routine->parameters[at].name);
    int64_t size = (int64_t)type_of(type)->size;
    for (int64_t i = 0; blocks.count && i < blocks.items[0].count; i++) {
        int64_t value = op == OP_PROD && comm->rank ? 1 : element_of(comm->rank, i, number);
        put_number(buffers[side], i, size, kind_of(type), value);
    }
}

/* Which of all elements is the first that arrives here. */
static int64_t first_element(const struct call *call, const struct communicator *comm, const char *stem)
{
    int64_t first = 0;
    if (!strcmp(stem, "reduce_scatter_block"))
        return comm->rank * field_of(call, "recvcount", 0);
    const struct field *counts = array_of(call, "recvcounts");
    for (int i = 0; counts && i < comm->rank; i++)
        first += counts->array[i];
    return first;
}

static void verify_sum(const struct call *call, const char *stem, const struct communicator *comm,
                       uint64_t number, char *const buffers[2])
{
    int at = call->buffers[1];
    if (at < 0 || (!strcmp(stem, "reduce") && field_of(call, "root", 0) != comm->rank))
        return;
    int64_t type = field_of(call, "datatype", 0), size = (int64_t)type_of(type)->size;
    int64_t op = -1 - field_of(call, "op", 0), first = first_element(call, comm, stem);
    int64_t ranks = !strcmp(stem, "scan") ? comm->rank + 1 : comm->size, due[PERIOD];
    for (int i = 0; i < PERIOD; i++)
        due[i] = combined(op, 0, ranks, i, number);
    blocks_of_buffer(call, "recvbuf");
    for (int64_t i = 0; blocks.count && i < blocks.items[0].count; i++) {
        char wanted[16];
        put_number(wanted, 0, size, kind_of(type), due[(first + i) % PERIOD]);
        if (memcmp(wanted, buffers[1] + i * size, (size_t)size)) {
            report_difference(call->routine->name, -1, i * size);
            return;
        }
    }
    checks.right++;
}

#endif
