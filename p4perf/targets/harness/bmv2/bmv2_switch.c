/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of simple_switch, and what simple_switch_CLI says to them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bmv2.h"

#define START_MS 30000
#define PROMPT "RuntimeCmd: "

static double
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + ts.tv_nsec * 1e-6;
}

/* The program dies with this process. */
pid_t
start_program(char *const *words, int input, int output)
{
	const pid_t parent = getpid();
	const pid_t child = fork();
	int other;

	if (child < 0)
		fail("device", "no process for %s: %s", words[0], strerror(errno));
	if (child > 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
	    dup2(output, STDERR_FILENO) < 0)
		_exit(1);
	for (other = 3; other < 1024; other++)
		close(other);
	execvp(words[0], words);
	dprintf(STDERR_FILENO, "%s cannot be started: %s\n", words[0], strerror(errno));
	_exit(127);
}

static int
nothing(void)
{
	const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail("device", "/dev/null: %s", strerror(errno));
	return fd;
}

/* A file without a name. */
static FILE *
scratch(const char *name)
{
	const int fd = memfd_create(name, 0);
	FILE *const file = fd < 0 ? NULL : fdopen(fd, "w+");

	if (file == NULL)
		fail("memory", "no memory for %s: %s", name, strerror(errno));
	return file;
}

/* Whether simple_switch was built with nanomsg, which binds an address in the file system by default. */
static bool
has_notifications(const struct options *options)
{
	char *const words[] = {(char *)options->switch_path, "--help", NULL};
	FILE *const help = scratch("help");
	bool found = false;
	char line[1024];
	int status;

	waitpid(start_program(words, nothing(), fileno(help)), &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		fail("device", "%s cannot be started", options->switch_path);
	rewind(help);
	while (!found && fgets(line, sizeof(line), help) != NULL)
		found = strstr(line, "--notifications-addr") != NULL;
	fclose(help);
	return found;
}

void
switch_start(struct switch_process *process, const struct options *options, bool copies)
{
	const unsigned int n_sinks = copies ? options->n_sinks : 0;
	const unsigned int number =
		copies || options->baseline_port < 0 ? options->port : (unsigned int)options->baseline_port;
	char **const words = calloc(2 * n_sinks + 16, sizeof(*words));
	unsigned int n = 0, i;
	char *port, *json;

	if (words == NULL || asprintf(&port, "%u", process->thrift_port) < 0 ||
	    asprintf(&json, "%s/%s.json", options->folder, process->name) < 0)
		fail("memory", "no memory for a command");
	process->load_ms = now_ms();
	process->log = scratch(process->name);
	words[n++] = (char *)options->switch_path;
	words[n++] = "--thrift-port";
	words[n++] = port;
	words[n++] = "--log-level";
	words[n++] = "off";
	if (has_notifications(options)) {
		words[n++] = "--notifications-addr";
		words[n++] = "inproc://p4perf";
	}
	words[n++] = "-i";
	if (asprintf(&words[n++], "%u@" INTERFACE, number) < 0)
		fail("memory", "no memory for a command");
	for (i = 0; i < n_sinks; i++) {
		words[n++] = "-i";
		if (asprintf(&words[n++], "%u@copy%u", options->sinks[i], options->sinks[i]) < 0)
			fail("memory", "no memory for a command");
	}
	words[n++] = json;
	process->pid = start_program(words, nothing(), fileno(process->log));
}

/* The last line that a process printed. */
static const char *
last_words(FILE *log)
{
	static char last[512];
	char line[512];

	snprintf(last, sizeof(last), "it said nothing");
	rewind(log);
	while (fgets(line, sizeof(line), log) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] != '\0')
			snprintf(last, sizeof(last), "%s", line);
	}
	return last;
}

void
switch_check(struct switch_process *process, const char *kind)
{
	int status;

	if (waitpid(process->pid, &status, WNOHANG) != process->pid)
		return;
	fail(kind, "simple_switch with the %s %s %d: %s", process->name,
	     WIFSIGNALED(status) ? "died of signal" : "ended with status",
	     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), last_words(process->log));
}

static bool
answers(unsigned int port)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	const bool result = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;

	if (fd >= 0)
		close(fd);
	return result;
}

void
switch_await(struct switch_process *process)
{
	const struct timespec moment = {.tv_nsec = 2000000};
	const double deadline = now_ms() + START_MS;

	while (!answers(process->thrift_port)) {
		switch_check(process, "refused");
		if (now_ms() > deadline)
			fail("device", "simple_switch with the %s takes no commands within %d s: %s", process->name,
			     START_MS / 1000, last_words(process->log));
		nanosleep(&moment, NULL);
	}
}

/* What is given to the CLI: the commands of the file, and a question for the number of entries of each table. */
static FILE *
conversation(const char *commands, const struct table *tables, unsigned int n_tables)
{
	FILE *const all = scratch("commands");
	char block[1 << 16], last = '\n';
	unsigned int i;
	size_t n;

	if (commands != NULL) {
		FILE *const file = fopen(commands, "r");

		if (file == NULL)
			fail("usage", "%s: %s", commands, strerror(errno));
		while ((n = fread(block, 1, sizeof(block), file)) != 0) {
			fwrite(block, 1, n, all);
			last = block[n - 1];
		}
		fclose(file);
		if (last != '\n') /* at an empty line the CLI repeats its last command */
			fputc('\n', all);
	}
	for (i = 0; i < n_tables; i++)
		fprintf(all, "table_num_entries %s\n", tables[i].name);
	if (fflush(all) != 0)
		fail("memory", "no memory for the commands");
	rewind(all);
	return all;
}

/* Let the CLI carry out commands: its process, and what it says. */
static pid_t
talk(const struct switch_process *process, const struct options *options, FILE *commands, FILE **output)
{
	char port[16];
	char *const words[] = {(char *)options->cli_path, "--thrift-port", port, NULL};
	pid_t child;
	int ends[2];

	snprintf(port, sizeof(port), "%u", process->thrift_port);
	if (pipe(ends) != 0 || (*output = fdopen(ends[0], "r")) == NULL)
		fail("device", "no pipe for simple_switch_CLI: %s", strerror(errno));
	child = start_program(words, fileno(commands), ends[1]);
	close(ends[1]);
	return child;
}

static bool
begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/*
 * Judge a line of the CLI, whose exit status is 0 whatever its commands did. A line that is nothing but a number answers
 * a question. True: it is one.
 */
static bool
is_answer(char *line, uint64_t *number)
{
	static const char *const complaints[] = {"Error", "Invalid", "***", "Could not"};
	char *text = line, *end;
	unsigned int i;

	while (begins(text, PROMPT))
		text += strlen(PROMPT);
	text[strcspn(text, "\r\n")] = '\0';
	for (i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++)
		if (begins(text, complaints[i]))
			fail("refused", "simple_switch_CLI says: %s", text);
	*number = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

void
switch_load(struct switch_process *process, const struct options *options, const char *commands,
	    const struct table *tables, unsigned int n_tables)
{
	FILE *const input = conversation(commands, tables, n_tables);
	unsigned int answered = 0;
	char line[4096];
	uint64_t number;
	int status;
	FILE *output;
	pid_t child;

	if (commands == NULL && n_tables == 0) {
		process->load_ms = now_ms() - process->load_ms;
		return;
	}
	child = talk(process, options, input, &output);
	line[0] = '\0';
	while (fgets(line, sizeof(line), output) != NULL) {
		if (!is_answer(line, &number))
			continue;
		if (answered == n_tables)
			fail("refused", "simple_switch_CLI says more numbers than it was asked for");
		if (number != tables[answered].entries)
			fail("refused", "table %s has %lu entries instead of %lu", tables[answered].name, number,
			     tables[answered].entries);
		answered++;
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("refused", "simple_switch_CLI %s %d: %s", WIFSIGNALED(status) ? "died of signal" : "ended with status",
		     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), line);
	switch_check(process, "refused");
	if (answered < n_tables)
		fail("refused", "simple_switch_CLI does not report table %s", tables[answered].name);
	process->load_ms = now_ms() - process->load_ms;
	fclose(output);
	fclose(input);
}

/* The cells of a line behind its sign: "r= 3, 0, 7" of a register, "c[2]= (128 bytes, 1 packets)" of a cell. */
static uint64_t
sum_of(const struct state *state, const char *shown, uint64_t *cell)
{
	unsigned long long bytes, packets;
	uint64_t sum = 0;
	char *end;

	if (state->kind != OF_REGISTER) {
		if (sscanf(shown, " (%llu bytes, %llu packets)", &bytes, &packets) != 2)
			fail("verify", "simple_switch_CLI shows counter %s as%s", state->name, shown);
		return ++*cell * (state->kind == OF_BYTES ? bytes : packets);
	}
	do {
		const uint64_t value = (uint64_t)strtoll(shown, &end, 10);

		if (end == shown)
			fail("verify", "simple_switch_CLI shows register %s as%s", state->name, shown);
		sum += ++*cell * value;
		shown = end + 1;
	} while (*end == ',');
	return sum;
}

uint64_t
switch_state(struct switch_process *process, const struct options *options, const struct state *state)
{
	FILE *const input = scratch("questions");
	char *line = NULL, *sign;
	uint64_t cell = 0, sum = 0, i;
	size_t size = 0;
	FILE *output;
	pid_t child;

	if (state->kind == OF_REGISTER)
		fprintf(input, "register_read %s\n", state->name);
	for (i = 0; state->kind != OF_REGISTER && i < state->cells; i++)
		fprintf(input, "counter_read %s %lu\n", state->name, i);
	fflush(input);
	rewind(input);
	child = talk(process, options, input, &output);
	while (getline(&line, &size, output) > 0)
		if (strstr(line, state->name) != NULL && (sign = strstr(line, "= ")) != NULL)
			sum += sum_of(state, sign + 1, &cell);
	waitpid(child, NULL, 0);
	if (cell != state->cells)
		fail("verify", "simple_switch_CLI shows %lu of %lu cells of %s", cell, state->cells, state->name);
	free(line);
	fclose(output);
	fclose(input);
	return sum;
}

uint64_t
switch_resident_bytes(const struct switch_process *process)
{
	char path[64];
	uint64_t pages = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", process->pid);
	file = fopen(path, "r");
	if (file != NULL) {
		if (fscanf(file, "%*u %lu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t
switch_busy_ns(const struct switch_process *process)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(process->pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		fail("device", "simple_switch with the %s has died", process->name);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
