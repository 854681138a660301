/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of simple_switch. A packet passes four of them: one receives it, one runs parser and ingress, one runs egress
 * and deparser (each port belongs to one of four), one sends. Between ingress and egress is a queue of 64 packets that
 * drops what it has no room for, between the others are queues that hold the sender up.
 *
 * On one core it is a matter of luck then which thread runs, and how many packets are dropped after half of the work was
 * done. With priorities that rise along the path every packet is finished before the next one is begun: nothing is dropped
 * inside, and what the switch has no time for stays in front of it, in the ring of its socket.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "bmv2.h"

#define ATTEMPTS 100

/* A number of /proc/PID/task/TID/status. */
static uint64_t
status_of(const struct switch_process *process, int thread, const char *key)
{
	const size_t length = strlen(key);
	char path[64], line[256];
	uint64_t value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", process->pid, thread);
	file = fopen(path, "r");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, key, length) == 0)
			value = strtoull(line + length, NULL, 10);
	if (file != NULL)
		fclose(file);
	return value;
}

static int
by_id(const void *left, const void *right)
{
	return ((const struct thread *)left)->id - ((const struct thread *)right)->id;
}

/* All of them, in the order in which they were started. */
unsigned int
threads_read(const struct switch_process *process, struct thread *threads)
{
	const struct dirent *entry;
	unsigned int n = 0;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", process->pid);
	tasks = opendir(path);
	if (tasks == NULL)
		fail("device", "the threads of simple_switch cannot be looked at: %s", strerror(errno));
	while (n < MAX_THREADS && (entry = readdir(tasks)) != NULL) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		threads[n].id = atoi(entry->d_name);
		threads[n].sleeps = status_of(process, threads[n].id, "voluntary_ctxt_switches:");
		n++;
	}
	closedir(tasks);
	qsort(threads, n, sizeof(*threads), by_id);
	return n;
}

/* Whether a thread waits for packets: the one that receives does it by select(), the others for a signal. */
static bool
selects(const struct switch_process *process, int thread)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", process->pid, thread);
	file = fopen(path, "r");
	if (file != NULL) {
		if (fscanf(file, "%ld", &number) != 1)
			number = -1;
		fclose(file);
	}
#ifdef SYS_select
	if (number == SYS_select)
		return true;
#endif
	return number == SYS_pselect6;
}

/* Sort them out, if each of them waits at the moment. */
static bool
sort_path(struct switch_process *process, const struct thread *threads, unsigned int n)
{
	int receiver = 0;
	unsigned int i, n_receivers = 0;

	process->n_path = 0;
	/* Ingress is started first, then egress, then the thread that sends. */
	for (i = n; i-- > 0;) {
		if (!selects(process, threads[i].id)) {
			process->path[process->n_path++] = threads[i].id;
		} else {
			receiver = threads[i].id;
			n_receivers++;
		}
	}
	if (n_receivers != 1 || process->n_path < 3) {
		process->n_path = 0;
		return false;
	}
	process->path[process->n_path++] = receiver;
	return true;
}

void
threads_find(struct switch_process *process, const struct thread *before, unsigned int n_before, uint64_t sleeps)
{
	static struct thread now[MAX_THREADS];
	const struct timespec moment = {.tv_nsec = 2000000};
	const unsigned int n = threads_read(process, now);
	unsigned int i, k, n_found = 0, attempt;

	for (i = 0; i < n; i++) {
		for (k = 0; k < n_before && before[k].id != now[i].id; k++)
			;
		/* One that was not there before was started since then. */
		if (now[i].sleeps - (k < n_before ? before[k].sleeps : 0) >= sleeps)
			now[n_found++] = now[i];
	}
	for (attempt = 0; attempt < ATTEMPTS && !sort_path(process, now, n_found); attempt++)
		nanosleep(&moment, NULL);
}

bool
threads_order(const struct switch_process *process, int priority)
{
	bool granted = process->n_path != 0;
	unsigned int i;

	for (i = 0; i < process->n_path; i++) {
		/* All threads of egress have the same. */
		const unsigned int stage = i == 0 ? 0 : i + 2 < process->n_path ? 1 : i + 4 - process->n_path;
		struct sched_param parameters = {.sched_priority = priority > 0 ? priority - (int)stage : 0};

		if (parameters.sched_priority < 0 || (priority > 0 && parameters.sched_priority == 0))
			return false;
		granted &= sched_setscheduler(process->path[i], priority > 0 ? SCHED_FIFO : SCHED_OTHER, &parameters) == 0;
	}
	return granted && priority > 0;
}

uint64_t
threads_switches(const struct switch_process *process)
{
	return process->n_path == 0 ? 0 : status_of(process, process->path[0], "nonvoluntary_ctxt_switches:");
}
