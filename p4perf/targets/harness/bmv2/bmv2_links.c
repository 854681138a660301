/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces of the namespace, and the packet sockets at them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>

#include "bmv2.h"

#define SOCKET_BYTES (2 << 20)
#define ATTEMPTS 1000

/*
 * No packet is larger than the MTU. Where the kernel may put packets together, libpcap has rings of 2 MiB with slots of
 * 64 KiB, 32 of them, instead of some six hundred.
 */
static void
keep_packets_apart(void)
{
	static const uint32_t commands[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO};
	const int handle = socket(AF_INET, SOCK_DGRAM, 0);
	unsigned int i;

	for (i = 0; handle >= 0 && i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct ethtool_value value = {.cmd = commands[i], .data = 0};
		struct ifreq request = {.ifr_name = INTERFACE, .ifr_data = (char *)&value};

		ioctl(handle, SIOCETHTOOL, &request); /* kernels differ in what they let be changed */
	}
	if (handle >= 0)
		close(handle);
}

/* What leaves by another port than that of the generator goes through a pair of interfaces and is dropped by the kernel. */
void
links_up(const struct options *options)
{
	char *const words[] = {"ip", "-batch", "-", NULL};
	const int batch = memfd_create("batch", 0);
	const int quiet = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned int i;
	int status;

	if (batch < 0 || quiet < 0)
		fail("memory", "no memory for commands: %s", strerror(errno));
	dprintf(batch, "link set lo up\n");
	for (i = 0; i < options->n_sinks; i++) {
		const unsigned int port = options->sinks[i];

		dprintf(batch, "link add copy%u mtu %u type veth peer name sink%u mtu %u\n", port, LINK_MTU, port,
			LINK_MTU);
		dprintf(batch, "link set sink%u up\nlink set copy%u up\n", port, port);
	}
	if (lseek(batch, 0, SEEK_SET) != 0 || waitpid(start_program(words, batch, quiet), &status, 0) < 0 || status != 0)
		fail("link", "ip -batch failed: is iproute2 installed, and is this root?");
	close(batch);
	close(quiet);
	keep_packets_apart();
}

/* Columns of /proc/net/dev: eight numbers received, eight sent. */
struct link_counters
links_read(void)
{
	struct link_counters result = {0};
	FILE *const file = fopen("/proc/self/net/dev", "r");
	uint64_t sent, not_sent;
	char line[512], *colon, *name;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		colon = strchr(line, ':');
		if (colon == NULL)
			continue;
		*colon = '\0';
		name = line + strspn(line, " ");
		if (sscanf(colon + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %*u %lu %*u %lu", &sent, &not_sent) != 2)
			continue;
		if (strcmp(name, INTERFACE) == 0) {
			result.sent = sent;
			result.not_sent = not_sent;
		} else if (strncmp(name, "copy", 4) == 0) {
			result.copies += sent;
		}
	}
	if (file == NULL)
		fail("device", "the counters of the interfaces cannot be read: %s", strerror(errno));
	fclose(file);
	return result;
}

static int
open_namespace(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The kernel drops what is sent before it has noticed that the other end is up, which takes a moment. */
static void
await_running(int socket, const char *interface)
{
	const struct timespec moment = {.tv_nsec = 5000000};
	struct ifreq request = {0};
	unsigned int attempt;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	for (attempt = 0; attempt < ATTEMPTS; attempt++) {
		if (ioctl(socket, SIOCGIFFLAGS, &request) != 0)
			fail("link", "the state of the interface %s is not known: %s", interface, strerror(errno));
		nanosleep(&moment, NULL);
		if ((request.ifr_flags & IFF_RUNNING) != 0)
			return;
	}
	fail("link", "the interface %s does not come up", interface);
}

int
link_socket(const char *interface, bool of_parent)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	const int own = open_namespace(getpid()), other = of_parent ? open_namespace(getppid()) : -1;
	const int bytes = SOCKET_BYTES;
	int fd;

	if (own < 0 || (of_parent && (other < 0 || setns(other, CLONE_NEWNET) != 0)))
		fail("link", "the other end of the link cannot be reached: %s", strerror(errno));
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	address.sll_ifindex = (int)if_nametoindex(interface);
	if (fd < 0 || address.sll_ifindex == 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		fail("link", "no packet socket at the interface %s: %s", interface, strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0)
		fail("link", "no memory for the packets of the interface %s: %s", interface, strerror(errno));
	await_running(fd, interface);
	if (of_parent && setns(own, CLONE_NEWNET) != 0)
		fail("link", "no way back to the namespace of the device: %s", strerror(errno));
	close(own);
	if (of_parent)
		close(other);
	return fd;
}

static bool
is_at(int fd, unsigned int interface)
{
	struct sockaddr_ll address = {0};
	socklen_t length = sizeof(int);
	int domain = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_PACKET)
		return false;
	length = sizeof(address);
	return getsockname(fd, (struct sockaddr *)&address, &length) == 0 && (unsigned int)address.sll_ifindex == interface;
}

void
socket_find(struct switch_process *process)
{
	const int handle = (int)syscall(SYS_pidfd_open, process->pid, 0);
	const unsigned int interface = if_nametoindex(INTERFACE);
	const struct dirent *entry;
	char path[64];
	DIR *files;

	snprintf(path, sizeof(path), "/proc/%d/fd", process->pid);
	files = opendir(path);
	if (handle < 0 || files == NULL)
		fail("device", "simple_switch cannot be looked at: %s (Linux 5.6 and root are needed)", strerror(errno));
	process->socket = -1;
	while (process->socket < 0 && (entry = readdir(files)) != NULL) {
		const int fd = entry->d_name[0] == '.' ? -1 : (int)syscall(SYS_pidfd_getfd, handle, atoi(entry->d_name), 0);

		if (fd >= 0 && is_at(fd, interface))
			process->socket = fd;
		else if (fd >= 0)
			close(fd);
	}
	closedir(files);
	close(handle);
	if (process->socket < 0)
		fail("device", "simple_switch with the %s has no packet socket at its interface", process->name);
}

void
socket_listen(int socket, bool listen)
{
	struct sock_filter nothing = {.code = BPF_RET | BPF_K, .k = 0};
	const struct sock_fprog filter = {.len = 1, .filter = &nothing};
	const int unused = 0;
	int result;

	if (listen)
		result = setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
	else
		result = setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
	if (result != 0 && !(listen && errno == ENOENT))
		fail("device", "the filter of a packet socket cannot be changed: %s", strerror(errno));
}

struct socket_counters
socket_read(int socket)
{
	union tpacket_stats_u counters = {0}; /* both of its forms begin with the same two numbers */
	socklen_t length = sizeof(counters);

	if (getsockopt(socket, SOL_PACKET, PACKET_STATISTICS, &counters, &length) != 0)
		fail("device", "the counters of a packet socket cannot be read: %s", strerror(errno));
	return (struct socket_counters){counters.stats1.tp_packets, counters.stats1.tp_drops};
}
