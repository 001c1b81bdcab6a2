/* What a recorded rank writes: FOLDER/RANK.record, with all it called of MPI, repeats folded.
 *
 * struct record_head; for each routine struct record_routine; signatures, each with its length
 * before it; then the folded sequence. Little-endian; `varint` is LEB128, and a signed number is
 * zigzag-coded. A node of the sequence is one of
 *     0, signature, times, gap ticks, took ticks, buckets,
 *        buckets x (exponent, count, ticks, standard deviation in ticks)
 *     1, count, items, and as many nodes
 * where `times` is how often the call was made in all, the gap is the time since the call before,
 * and the bucket of exponent e holds gaps of 4^e to 4^(e+1) - 1 ticks; without buckets all gaps are
 * their mean. A signature is the number of its routine and one value for each letter of the
 * routine's `fields`:
 *     a  address: 0 a buffer, 1 MPI_IN_PLACE, 2 NULL (MPI_BOTTOM)
 *     i  integer        r  rank, or enum special_rank        k  tag, -1 any
 *     t c g o w q m  datatype, communicator, group, op, window, request, message: 0 none, > 0 the
 *        number that it was given, < 0 predefined: -1 - its place in the lists below
 *     I T Q  how many, and as many integers (each minus the one before), datatypes, requests
 *     A B D E G H  what came back: a datatype, group, op, window, message, request: its number
 *     C  a communicator: its number, size, own rank, how many, and as many ranks of the world
 *        (each minus the one before); all of them where own rank is 0, else only the first
 *     x X  integer, and integers, that came back: of MPI_Waitany and the like the place of what
 *        was complete, -1 none, -2 any one of the requests that are not of a wildcard
 *     z  0; or 1, source, tag: what a wildcard matched
 *     Z  how many, and as many (position, source, tag): the same of requests that were completed
 */
#ifndef MPIGRAFT_CALLS_RECORD_FILE_H
#define MPIGRAFT_CALLS_RECORD_FILE_H

#include <stdint.h>

#define RECORD_MAGIC "mpigraft-record"

enum { RECORD_VERSION = 2, RECORD_NAME = 32, RECORD_FIELDS = 32 };

enum record_lack {
    LACKS_END = 1,       /* the budget was used up */
    SEVERAL_THREADS = 4, /* called MPI; their calls are in the order in which they ended */
    ENDED_BY_ABORT = 8,
    LACKS_OBJECTS = 16, /* calls use what none of them made */
    CALLS_FAILED = 32,  /* and are not there */
};

enum { ANY_OF_THEM = -2 };

enum special_rank {
    RANK_OF_NULL = -1, /* MPI_PROC_NULL */
    RANK_ANY = -2,
    RANK_OF_ROOT = -3, /* MPI_ROOT */
    RANK_UNDEFINED = -4,
};

struct record_head {
    char magic[16];
    uint32_t version, routines;
    int32_t rank, size;
    uint32_t lacks, reserved;
    double ticks_per_s;
    uint64_t began_ns, run_ticks;
    uint64_t events; /* as called */
    uint64_t signatures, signature_bytes, node_bytes;
    uint64_t polls; /* tests and probes without success, which are not recorded */
    uint64_t world_collectives;
};

struct record_routine {
    char name[RECORD_NAME], fields[RECORD_FIELDS]; /* no fields: calls are not recorded */
};

/* Predefined objects: MPI's name, and the end of Open MPI's. The place in a list is what a record
 * says: new ones go to the end. */
#define PREDEFINED_TYPES(TYPE)                                                                  \
    TYPE(CHAR, char) TYPE(SIGNED_CHAR, signed_char) TYPE(UNSIGNED_CHAR, unsigned_char)          \
    TYPE(BYTE, byte) TYPE(WCHAR, wchar) TYPE(SHORT, short) TYPE(UNSIGNED_SHORT, unsigned_short) \
    TYPE(INT, int) TYPE(UNSIGNED, unsigned) TYPE(LONG, long)                                    \
    TYPE(UNSIGNED_LONG, unsigned_long) TYPE(FLOAT, float) TYPE(DOUBLE, double)                  \
    TYPE(LONG_DOUBLE, long_double) TYPE(LONG_LONG, long_long_int)                               \
    TYPE(UNSIGNED_LONG_LONG, unsigned_long_long) TYPE(PACKED, packed)                           \
    TYPE(FLOAT_INT, float_int) TYPE(DOUBLE_INT, double_int) TYPE(LONG_INT, long_int)            \
    TYPE(2INT, 2int) TYPE(SHORT_INT, short_int) TYPE(LONG_DOUBLE_INT, longdbl_int)              \
    TYPE(INT8_T, int8_t) TYPE(INT16_T, int16_t) TYPE(INT32_T, int32_t) TYPE(INT64_T, int64_t)   \
    TYPE(UINT8_T, uint8_t) TYPE(UINT16_T, uint16_t) TYPE(UINT32_T, uint32_t)                    \
    TYPE(UINT64_T, uint64_t) TYPE(AINT, aint) TYPE(OFFSET, offset) TYPE(COUNT, count)           \
    TYPE(C_BOOL, c_bool) TYPE(C_FLOAT_COMPLEX, c_float_complex)                                 \
    TYPE(C_DOUBLE_COMPLEX, c_double_complex) TYPE(C_LONG_DOUBLE_COMPLEX, c_long_double_complex) \
    TYPE(CHARACTER, character) TYPE(LOGICAL, logical) TYPE(INTEGER, integer) TYPE(REAL, real)   \
    TYPE(DOUBLE_PRECISION, dblprec) TYPE(COMPLEX, cplex) TYPE(DOUBLE_COMPLEX, dblcplex)         \
    TYPE(INTEGER1, integer1) TYPE(INTEGER2, integer2) TYPE(INTEGER4, integer4)                  \
    TYPE(INTEGER8, integer8) TYPE(REAL4, real4) TYPE(REAL8, real8) TYPE(REAL16, real16)         \
    TYPE(COMPLEX8, complex8) TYPE(COMPLEX16, complex16) TYPE(COMPLEX32, complex32)              \
    TYPE(2INTEGER, 2integer) TYPE(2REAL, 2real) TYPE(2DOUBLE_PRECISION, 2dblprec)               \
    TYPE(CXX_BOOL, cxx_bool) TYPE(CXX_FLOAT_COMPLEX, cxx_cplex)                                 \
    TYPE(CXX_DOUBLE_COMPLEX, cxx_dblcplex) TYPE(CXX_LONG_DOUBLE_COMPLEX, cxx_ldblcplex)

#define PREDEFINED_OPS(OP)                                                              \
    OP(MAX, max) OP(MIN, min) OP(SUM, sum) OP(PROD, prod) OP(LAND, land) OP(BAND, band) \
    OP(LOR, lor) OP(BOR, bor) OP(LXOR, lxor) OP(BXOR, bxor) OP(MINLOC, minloc)          \
    OP(MAXLOC, maxloc) OP(REPLACE, replace) OP(NO_OP, no_op)

#define PREDEFINED_COMMS(COMM) COMM(WORLD, world) COMM(SELF, self)

#define PREDEFINED_GROUPS(GROUP) GROUP(EMPTY, empty)

#endif
