/* Preloaded into a command: system calls fail as on a disk that is full or broken, or the clock jumps.
 *
 * P4PERF_FAULT="ERRNO FIRST CALLS FOLDER": from the FIRST of the CALLS on (write, fsync, open, mkdir, rename) that concern
 * something below FOLDER, they fail with ERRNO. P4PERF_CALLS=FILE counts them instead, with a byte for each.
 * P4PERF_CLOCK=SECONDS: the time of day is that much later or earlier, in turns of 20 calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int seen;

static int fails(const char *call, const char *path)
{
	int number, first;
	char calls[100], folder[1000];
	const char *fault = getenv("P4PERF_FAULT");
	if (fault == NULL || sscanf(fault, "%d %d %99s %999s", &number, &first, calls, folder) != 4)
		return 0;
	if (strstr(calls, call) == NULL || strncmp(path, folder, strlen(folder)) != 0)
		return 0;
	const char *count = getenv("P4PERF_CALLS");
	if (count != NULL) {
		int handle = REAL(open)(count, O_WRONLY | O_CREAT | O_APPEND, 0644);
		REAL(write)(handle, "x", 1);
		close(handle);
		return 0;
	}
	if (++seen < first)
		return 0;
	errno = number;
	return 1;
}

static int fails_at(const char *call, int handle)
{
	char link[40], path[1000];
	snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
	ssize_t length = readlink(link, path, sizeof path - 1);
	if (length < 0)
		return 0;
	path[length] = 0;
	return fails(call, path);
}

ssize_t write(int handle, const void *data, size_t size)
{
	return fails_at("write", handle) ? -1 : REAL(write)(handle, data, size);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at)
{
	return fails_at("write", handle) ? -1 : REAL(pwrite64)(handle, data, size, at);
}

int fsync(int handle)
{
	return fails_at("fsync", handle) ? -1 : REAL(fsync)(handle);
}

int rename(const char *from, const char *to)
{
	return fails("rename", to) ? -1 : REAL(rename)(from, to);
}

int mkdir(const char *path, mode_t mode)
{
	return fails("mkdir", path) ? -1 : REAL(mkdir)(path, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list more;
	va_start(more, flags);
	mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	return flags & O_CREAT && fails("open", path) ? -1 : REAL(open64)(path, flags, mode);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int calls;
	const char *jump = getenv("P4PERF_CLOCK");
	int result = REAL(clock_gettime)(clock, now);
	if (jump != NULL && clock == CLOCK_REALTIME && ++calls / 20 % 2)
		now->tv_sec += atol(jump);
	return result;
}
