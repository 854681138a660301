unsigned program(volatile unsigned *total);
unsigned baseline(volatile unsigned *total);
