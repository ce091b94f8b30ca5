/*
 * knock SOCKET THREADS MILLISECONDS - connect again and again. Exit status 1 if one of the connections was refused, or none was made.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64

struct knocker {
	pthread_t thread;
	struct sockaddr_un to;
	int64_t until_ms;
	uint64_t made, refused;
	int error; /* the last */
};

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *run(void *arg)
{
	struct knocker *knocker = arg;

	while (now_ms() < knocker->until_ms) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 ||
		    connect(fd, (const struct sockaddr *)&knocker->to, sizeof(knocker->to)) != 0) {
			knocker->error = errno;
			knocker->refused++;
		} else {
			knocker->made++;
		}
		if (fd >= 0) {
			(void)close(fd);
		}
		(void)usleep(500);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct knocker knockers[MAX_THREADS];
	uint64_t made = 0, refused = 0;
	long n, ms;
	int error = 0;

	if (argc != 4 || strlen(argv[1]) >= sizeof(knockers[0].to.sun_path)) {
		(void)fprintf(stderr, "usage: knock SOCKET THREADS MILLISECONDS\n");
		return 2;
	}
	n = strtol(argv[2], NULL, 10);
	ms = strtol(argv[3], NULL, 10);
	n = n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
	for (long i = 0; i < n; i++) {
		knockers[i].to.sun_family = AF_UNIX;
		memcpy(knockers[i].to.sun_path, argv[1], strlen(argv[1]));
		knockers[i].until_ms = now_ms() + ms;
		if (pthread_create(&knockers[i].thread, NULL, run, &knockers[i]) != 0) {
			return 2;
		}
	}
	for (long i = 0; i < n; i++) {
		(void)pthread_join(knockers[i].thread, NULL);
		made += knockers[i].made;
		refused += knockers[i].refused;
		error = knockers[i].error != 0 ? knockers[i].error : error;
	}
	(void)printf("%ju connections, %ju refused%s%s\n", (uintmax_t)made, (uintmax_t)refused,
		     error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
	return made > 0 && refused == 0 ? 0 : 1;
}
