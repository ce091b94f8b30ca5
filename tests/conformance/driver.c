/* The conformance suite's driver of libration: README.md says what it is to do. Each command has a thread of its own. */
#include <ration.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MS 30000
#define MAX_WORDS 64
#define MAX_LEASES 16

struct named_lease {
	char name[32];
	struct ration_lease *lease;
};

struct command {
	char *line;
	char *words[MAX_WORDS]; /* the tag, the command, its arguments; NULL behind them */
};

static struct ration *client;
static struct named_lease leases[MAX_LEASES];
static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER; /* of the leases and the number of threads */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static unsigned n_running;

__attribute__((format(printf, 2, 3))) static void answer(const char *tag, const char *format, ...)
{
	va_list args;

	flockfile(stdout);
	(void)printf("%s ", tag);
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)putchar('\n');
	(void)fflush(stdout);
	funlockfile(stdout);
}

/* A code of a daemon that is newer than us is taken for INTERNAL. */
static const char *code_name(int code)
{
	const char *name = ration_code_name(code);

	return strcmp(name, "UNKNOWN") == 0 ? "INTERNAL" : name;
}

static void answer_result(const char *tag, int r)
{
	if (r == 0) {
		answer(tag, "ok");
	} else {
		answer(tag, "error %s",
		       r == -ETIMEDOUT	 ? "TIMEOUT"
		       : r == -ENOTCONN	 ? "UNREACHABLE"
		       : r == -EINVAL	 ? "INVALID_ARGUMENT"
		       : r == -ECANCELED ? "LOST"
		       : r < 0		 ? strerror(-r)
					 : code_name(r));
	}
}

static void report_loss(void *ctx, const struct ration_loss *loss)
{
	(void)ctx;
	answer("*", "loss %s %s %" PRId64, code_name(loss->code), loss->path, loss->amount);
}

static void do_add(const char *tag, char **args)
{
	struct ration_counter *counter = ration_counter(client, args[0]);

	if (counter != NULL) {
		ration_add(counter, strtoll(args[1], NULL, 10));
	}
	answer_result(tag, counter == NULL ? -errno : 0);
}

static void do_flush(const char *tag, char **args)
{
	answer_result(tag, ration_flush(client, (int)strtol(args[0], NULL, 10)));
}

static void do_durable(const char *tag, char **args)
{
	answer_result(tag, ration_flush_durable(client, (int)strtol(args[0], NULL, 10)));
}

static void do_needs(const char *tag, char **args)
{
	bool has = strcmp(args[0], "durable") == 0 || strcmp(args[0], "open") == 0;

	answer(tag, has ? "ok" : "unsupported");
}

static void do_get(const char *tag, char **args)
{
	const char *path = args[0];
	struct ration_value value;
	int r = ration_get(client, &path, 1, RATION_FRESH, PATIENCE_MS, &value, NULL);

	if (r == 0 && value.code == RATION_OK) {
		answer(tag, "value %" PRId64, value.total);
	} else {
		answer_result(tag, r != 0 ? r : value.code);
	}
}

static void answer_refused(const char *tag, const struct ration_charge_result *result)
{
	flockfile(stdout);
	(void)printf("%s refused", tag);
	for (size_t i = 0; i < result->n_bindings; i++) {
		(void)printf(" %s", result->bindings[i].path);
	}
	(void)putchar('\n');
	(void)fflush(stdout);
	funlockfile(stdout);
}

static void do_charge(const char *tag, char **args)
{
	struct ration_charge_options options = RATION_CHARGE_OPTIONS_INIT;
	struct ration_charge_item items[MAX_WORDS];
	struct ration_charge_result *result = NULL;
	size_t n = 0;
	int r;

	for (; args[0] != NULL && strchr(args[0], '/') == NULL; args++) {
		if (strncmp(args[0], "wait=", 5) == 0) {
			options.wait_ms = (uint32_t)strtoul(args[0] + 5, NULL, 10);
		}
		options.dry_run |= strcmp(args[0], "dry") == 0;
		options.detached |= strcmp(args[0], "detached") == 0;
	}
	for (; args[0] != NULL && args[1] != NULL; args += 2) {
		items[n++] = (struct ration_charge_item){ .path = args[0],
							  .amount = strtoll(args[1], NULL, 10) };
	}
	r = ration_charge(client, items, n, &options, PATIENCE_MS, &result);
	if (r == 0) {
		answer(tag, "granted");
	} else if (result != NULL) {
		answer_refused(tag, result);
	} else {
		answer_result(tag, r);
	}
	ration_charge_result_free(result);
}

static void do_uncharge(const char *tag, char **args)
{
	answer_result(tag, ration_uncharge(client, args[0], strtoll(args[1], NULL, 10), false,
					   PATIENCE_MS));
}

/* The lease of this name, NULL for none; a free place for the name "". */
static struct named_lease *find_lease(const char *name)
{
	struct named_lease *found = NULL;

	for (size_t i = 0; i < MAX_LEASES && found == NULL; i++) {
		if (strcmp(leases[i].name, name) == 0) {
			found = &leases[i];
		}
	}
	return found;
}

static struct ration_lease *get_lease(const char *name)
{
	struct named_lease *found;
	struct ration_lease *lease;

	(void)pthread_mutex_lock(&lock);
	found = find_lease(name);
	lease = found == NULL ? NULL : found->lease;
	(void)pthread_mutex_unlock(&lock);
	return lease;
}

static void do_lease(const char *tag, char **args)
{
	struct ration_lease *lease = ration_lease_open(client, args[1], strtoll(args[2], NULL, 10),
						       (uint32_t)strtoul(args[3], NULL, 10), NULL);
	struct named_lease *place;

	if (lease == NULL) {
		answer_result(tag, -errno);
		return;
	}
	(void)pthread_mutex_lock(&lock);
	place = find_lease("");
	if (place != NULL) {
		(void)snprintf(place->name, sizeof(place->name), "%s", args[0]);
		place->lease = lease;
	}
	(void)pthread_mutex_unlock(&lock);
	answer_result(tag, ration_lease_wait(lease, PATIENCE_MS));
}

static void do_try(const char *tag, char **args)
{
	struct ration_lease *lease = get_lease(args[0]);
	enum ration_fallback fallback = args[2] == NULL ? RATION_CLOSED : RATION_OPEN;

	answer(tag, lease != NULL && ration_try(lease, strtoll(args[1], NULL, 10), fallback)
			    ? "yes"
			    : "no");
}

static void do_return(const char *tag, char **args)
{
	struct ration_lease *lease = get_lease(args[0]);

	(void)pthread_mutex_lock(&lock);
	if (lease != NULL) {
		*find_lease(args[0]) = (struct named_lease){ .name = "" };
	}
	(void)pthread_mutex_unlock(&lock);
	answer_result(tag, ration_lease_close(lease, PATIENCE_MS, NULL));
}

static void close_leases(void)
{
	for (size_t i = 0; i < MAX_LEASES; i++) {
		(void)ration_lease_close(leases[i].lease, 0, NULL);
		leases[i] = (struct named_lease){ .name = "" };
	}
}

static void do_close(const char *tag, char **args)
{
	uint64_t undelivered = 0;
	int r;

	close_leases();
	r = ration_close(client, (int)strtol(args[0], NULL, 10), &undelivered);
	client = NULL;
	if (r == 0) {
		answer(tag, "ok");
	} else {
		answer(tag, "undelivered %" PRIu64, undelivered);
	}
}

static const struct {
	const char *name;
	void (*run)(const char *tag, char **args);
} commands[] = {
	{ "add", do_add },	     { "flush", do_flush }, { "durable", do_durable },
	{ "needs", do_needs },	     { "get", do_get },	    { "charge", do_charge },
	{ "uncharge", do_uncharge }, { "lease", do_lease }, { "try", do_try },
	{ "return", do_return },     { "close", do_close },
};

static void *run(void *arg)
{
	struct command *command = arg;
	bool known = false;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, command->words[1]) == 0) {
			commands[i].run(command->words[0], command->words + 2);
			known = true;
		}
	}
	if (!known) {
		answer(command->words[0], "unsupported");
	}
	free(command->line);
	free(command);
	(void)pthread_mutex_lock(&lock);
	n_running--;
	(void)pthread_cond_signal(&idle);
	(void)pthread_mutex_unlock(&lock);
	return NULL;
}

static struct command *read_command(void)
{
	struct command *command = calloc(1, sizeof(*command));
	char *save = NULL, *word;
	size_t size = 0, n = 0;

	if (command == NULL || getline(&command->line, &size, stdin) < 0) {
		if (command != NULL) {
			free(command->line);
		}
		free(command);
		return NULL;
	}
	for (word = strtok_r(command->line, " \n", &save); word != NULL && n < MAX_WORDS - 1;
	     word = strtok_r(NULL, " \n", &save)) {
		command->words[n++] = word;
	}
	return command;
}

/* Adds at once, so that they stay in order; what may wait on a thread. False: it can't be. */
static bool begin(struct command *command)
{
	pthread_t thread;

	(void)pthread_mutex_lock(&lock);
	n_running++;
	(void)pthread_mutex_unlock(&lock);
	if (strcmp(command->words[1], "add") == 0 || strcmp(command->words[1], "try") == 0) {
		(void)run(command);
		return true;
	}
	return pthread_create(&thread, NULL, run, command) == 0 && pthread_detach(thread) == 0;
}

int main(int argc, char **argv)
{
	struct ration_options options = RATION_OPTIONS_INIT;
	struct command *command;

	options.send_interval_ms = 10;
	options.on_loss = report_loss;
	client = argc == 2 ? ration_open(argv[1], &options) : NULL;
	if (client == NULL) {
		(void)fprintf(stderr, "usage: driver URL\n");
		return 2;
	}
	while ((command = read_command()) != NULL) {
		if (!begin(command)) {
			return 1;
		}
	}
	(void)pthread_mutex_lock(&lock);
	while (n_running > 0) {
		(void)pthread_cond_wait(&idle, &lock);
	}
	(void)pthread_mutex_unlock(&lock);
	if (client != NULL) {
		close_leases();
		(void)ration_close(client, 2000, NULL);
	}
	return 0;
}
