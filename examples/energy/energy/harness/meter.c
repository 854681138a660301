/* meter PACKETS EXPECTED: checks one packet, then times all of them. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "meter.h"

static double seconds(unsigned (*run)(volatile unsigned *), long packets)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long n = 0; n < packets; n++) {
        volatile unsigned total = 0;
        run(&total);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    long packets = atol(argv[1]);
    volatile unsigned total = 0;
    if (program(&total) != (unsigned)strtoul(argv[2], NULL, 10)) {
        fprintf(stderr, "the sum is %u, expected %s\n", total, argv[2]);
        return 1;
    }
    double baseline_s = seconds(baseline, packets), program_s = seconds(program, packets);
    printf("{\"packets\": %ld, \"program_s\": %.9f, \"baseline_s\": %.9f}\n", packets, program_s, baseline_s);
    return 0;
}
