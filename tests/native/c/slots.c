/* A benchmark whose setup takes more messages than its buffers have room for. */
#include <stdio.h>

#include "../../../src/mpigraft/native/bench/message.h"

const char program_name[] = "slots";

static void one_too_many(struct run *run)
{
    for (int w = 0; w <= run->window; w++)
        add_slot(run, &run->recv, run->peer, run->rank, run->message.bytes);
}

int main(void)
{
    static const struct benchmark greedy = {"greedy", "Greedy", PAIR, BANDWIDTH, WINDOWED,
                                            one_too_many, NULL, {NO_CALL}, NULL,
                                            IN_EVERY_MPI};
    const struct options options = {.window = 4};
    struct run run = {.options = &options, .benchmark = &greedy, .size = 2, .peer = 1};
    plan_size(&run, 8);
    puts("it had room");
    return 0;
}
