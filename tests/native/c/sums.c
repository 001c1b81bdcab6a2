/* Sums of signed chars: with any number of ranks none is over 127, and no rank's part is missed. */
#include <stdio.h>
#include <stdlib.h>

#include "../../../src/mpigraft/native/bench/content.c"

const char program_name[] = "sums";

enum { BYTES = 251 }; /* each that the content may have */

static unsigned char given[BYTES];
static char part[BYTES], sums[BYTES];

static void expect(bool holds, const char *what, int ranks, int rank)
{
    if (holds)
        return;
    printf("%s: %d ranks, rank %d\n", what, ranks, rank);
    exit(1);
}

static void add_part(struct run *run, int sign)
{
    fill_numbers(run, part, given, BYTES);
    for (int i = 0; i < BYTES; i++)
        sums[i] = (char)(sums[i] + sign * part[i]);
}

static const struct benchmark replaced = {.traits = REDUCES | IN_PLACE_SUM};
static const struct options apart = {0}, in_one_buffer = {.in_place = IN_PLACE_YES};

/* The same in place, where ranks give the largest of their parts. */
static void try_maxima(struct run *run)
{
    memset(sums, 0, sizeof sums);
    for (run->rank = 0; run->rank < run->size; run->rank++) {
        fill_numbers(run, part, given, BYTES);
        for (int i = 0; i < BYTES; i++)
            sums[i] = (unsigned char)part[i] > (unsigned char)sums[i] ? part[i] : sums[i];
    }
    run->options = &in_one_buffer;
    expect(right_sums(run, sums, given, BYTES), "right maxima are wrong", run->size, -1);
    sums[BYTES / 2]++;
    expect(!right_sums(run, sums, given, BYTES), "a wrong maximum is right", run->size, -1);
}

static void try_ranks(int ranks)
{
    struct run run = {.options = &apart, .benchmark = &replaced, .size = ranks,
                      .message = {.type = MPI_SIGNED_CHAR}};
    int exact[BYTES] = {0};
    memset(sums, 0, sizeof sums);
    for (run.rank = 0; run.rank < ranks; run.rank++) {
        add_part(&run, 1);
        for (int i = 0; i < BYTES; i++)
            exact[i] += part[i];
    }
    for (int i = 0; i < BYTES; i++)
        expect(exact[i] > 0 && exact[i] <= 127, "a sum of none, or over 127", ranks, i);
    expect(right_sums(&run, sums, given, BYTES), "right sums are wrong", ranks, -1);
    for (run.rank = 0; run.rank < ranks && ranks < 2000; run.rank++) {
        add_part(&run, -1);
        expect(!right_sums(&run, sums, given, BYTES), "a rank is missing", ranks, run.rank);
        add_part(&run, 1);
    }
    try_maxima(&run);
    run.message.type = MPI_UNSIGNED_CHAR;
    run.options = &apart;
    try_maxima(&run);
}

int main(void)
{
    for (int i = 0; i < BYTES; i++)
        given[i] = (unsigned char)i;
    for (int ranks = 1; ranks <= 130; ranks++)
        try_ranks(ranks);
    try_ranks(1000);
    try_ranks(10000); /* 239 groups: each rank still adds to some byte */
    return 0;
}
