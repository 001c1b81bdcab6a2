/* Folds the letters of its argument and prints the loops; without one, folds random sequences and
 * checks that they unfold to the same. Exit status 1: they do not. */
#include <stdio.h>

#include "trace/fold.c"

static void show(const struct sequence *sequence)
{
    for (size_t i = 0; i < sequence->length; i++) {
        const struct node *node = &sequence->nodes[i];
        if (!node->count) {
            printf("%c%llu ", (char)('a' + node->signature),
                   (unsigned long long)node->gaps.times);
            continue;
        }
        printf("%llu( ", (unsigned long long)node->count);
        show(node->body);
        printf(") ");
    }
}

struct run {
    unsigned calls[600];
    size_t length;
};

static void unfold(const struct sequence *sequence, struct run *run)
{
    for (size_t i = 0; i < sequence->length; i++)
        if (!sequence->nodes[i].count)
            run->calls[run->length++] = sequence->nodes[i].signature;
        else
            for (uint64_t k = 0; k < sequence->nodes[i].count; k++)
                unfold(sequence->nodes[i].body, run);
}

static unsigned call(int kind, int place)
{
    switch (kind) {
    case 0: return (unsigned)rand() % 2;
    case 1: return (unsigned)(place % 7 == 3 ? 5 : place % 3);
    default: return place % 10 < rand() % 8 ? 1 : (unsigned)rand() % 3;
    }
}

static bool is_kept(int kind, size_t length)
{
    struct run made = {.length = length}, back = {.length = 0};
    memset(&fold, 0, sizeof fold);
    for (size_t i = 0; i < length; i++) {
        made.calls[i] = call(kind, (int)i);
        fold_call(made.calls[i], (uint64_t)rand() % 100, 1);
    }
    unfold(&fold.all, &back);
    return back.length == length && !memcmp(made.calls, back.calls, length * sizeof *made.calls);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        for (const char *at = argv[1]; *at; at++)
            fold_call((uint32_t)(*at - 'a'), 1, 1);
        show(&fold.all);
        return 0;
    }
    for (int i = 0; i < 3000; i++)
        if (!is_kept(i % 3, (size_t)rand() % 600))
            return 1;
    return 0;
}
