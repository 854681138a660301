/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A veth pair between two network namespaces, one of this process and one of the device. They have no names, so that the
 * kernel takes them away with the processes, however these end.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"
#include "options.h"

/* IPv6 would send packets of its own. */
static void
be_quiet(void)
{
	static const char *const settings[] = {
		"/proc/sys/net/ipv6/conf/all/disable_ipv6",
		"/proc/sys/net/ipv6/conf/default/disable_ipv6",
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(settings); i++) {
		FILE *const file = fopen(settings[i], "w");

		if (file != NULL) {
			fputs("1\n", file);
			fclose(file);
		}
	}
}

static void
new_namespace(void)
{
	if (unshare(CLONE_NEWNET) != 0)
		fail("link", "no network namespace: %s (root or CAP_SYS_ADMIN is needed)", strerror(errno));
	be_quiet();
}

/* Run ip with these words, as the last of which stands NULL. */
static void
ip(const char *const *words)
{
	int status;
	const pid_t child = fork();

	if (child == 0) {
		if (dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
			execvp("ip", (char *const *)words);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		fail("link", "ip %s %s ... failed: is iproute2 installed, and is this root?", words[1], words[2]);
}

void
veth_generator(int device_pid, unsigned int mtu)
{
	char pid[16], bytes[16];
	const char *const pair[] = {"ip",   "link", "add",    "generator", "mtu", bytes, "type", "veth",
				    "peer", "name", "device", "mtu",       bytes, NULL};
	const char *const away[] = {"ip", "link", "set", "device", "netns", pid, NULL};
	const char *const up[] = {"ip", "link", "set", "generator", "up", NULL};

	snprintf(pid, sizeof(pid), "%d", device_pid);
	snprintf(bytes, sizeof(bytes), "%u", mtu);
	new_namespace();
	ip(pair);
	ip(away);
	ip(up);
}

void
veth_device(void)
{
	new_namespace();
}

void
veth_device_up(void)
{
	const char *const up[] = {"ip", "link", "set", "device", "up", NULL};

	ip(up);
}
