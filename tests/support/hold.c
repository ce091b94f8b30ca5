#include "tests/support/hold.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_name(pid_t pid, const char *thread, const char *name)
{
	char path[300], text[64] = "";
	FILE *file;
	bool same;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, thread);
	file = fopen(path, "re");
	if (file == NULL) {
		return false;
	}
	same = fgets(text, sizeof(text), file) != NULL && strncmp(text, name, strlen(name)) == 0 &&
	       text[strlen(name)] == '\n';
	(void)fclose(file);
	return same;
}

static pid_t find_thread(pid_t pid, const char *name)
{
	char path[64];
	struct dirent *entry;
	pid_t found = -ESRCH;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (dir == NULL) {
		return -ESRCH;
	}
	while (found < 0 && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] != '.' && has_name(pid, entry->d_name, name)) {
			found = (pid_t)strtol(entry->d_name, NULL, 10);
		}
	}
	(void)closedir(dir);
	return found;
}

pid_t hold_thread(pid_t pid, const char *name)
{
	pid_t thread = find_thread(pid, name);
	int status;

	/* A thread that was just begun names itself when it comes to run. */
	for (unsigned i = 0; i < 100 && thread == -ESRCH; i++) {
		(void)usleep(20000);
		thread = find_thread(pid, name);
	}
	if (thread < 0) {
		return thread;
	}
	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0 ||
	    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0 ||
	    waitpid(thread, &status, __WALL) != thread) {
		int error = errno;

		if (error == EPERM) {
			(void)fprintf(stderr, "SKIPPED: this process may not trace another\n");
		}
		return -error;
	}
	return WIFSTOPPED(status) ? thread : -ESRCH;
}

void hold_release(pid_t thread)
{
	(void)ptrace(PTRACE_DETACH, thread, NULL, NULL);
}

void hold_wait(pid_t thread)
{
	int status;

	while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status)) {
		/* a stop more */
	}
}
