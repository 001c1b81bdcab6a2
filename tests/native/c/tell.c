/* Writes records as ranks do: FOLDER, how many, the first rank. */
#include "witness/rank_record.h"

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    for (int n = 0; n < atoi(argv[2]); n++)
        testify(argv[1], (struct place){atoi(argv[3]) + n, 400, false}, "none");
    return 0;
}
