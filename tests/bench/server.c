#include "tests/bench/server.h"

#include "tests/bench/report.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_SERVERS 4
#define PATIENCE_MS 10000

/* Those that run: a signal's handler must find them. */
static struct server *running[MAX_SERVERS];

/* ---- ending ---- */

/* All that may be in a server's directory. Only calls that a signal's handler may make. */
static void remove_files(const struct server *server)
{
	static const char *const names[] = {
		"socket",
		"socket.lock",
		"conf",
		"log",
		"00000000000000000000.snap",
		"state.db",
		"state.db-wal",
		"state.db-shm",
		"plain.db",
		"plain.db-wal",
		"plain.db-shm",
	};
	int dir = open(server->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)unlinkat(dir, names[i], 0);
	}
	(void)close(dir);
	(void)rmdir(server->dir);
}

/* Whatever is in there; by another program, since nothing here may call malloc. */
static void remove_all(const struct server *server)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/bin/rm", "rm", "-rf", server->dir, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
}

static void end(struct server *server)
{
	if (server->pid > 0) {
		(void)kill(server->pid, SIGKILL);
		(void)waitpid(server->pid, NULL, 0);
		server->pid = 0;
	}
	if (server->port != 0) {
		remove_all(server);
	} else {
		remove_files(server);
	}
}

static void end_all(void)
{
	for (int i = 0; i < MAX_SERVERS; i++) {
		if (running[i] != NULL) {
			end(running[i]);
			running[i] = NULL;
		}
	}
}

static void on_signal(int number)
{
	end_all();
	_exit(128 + number);
}

static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };

	(void)sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		(void)sigaction(numbers[i], &action, NULL);
	}
	(void)atexit(end_all);
}

static struct server **find_running(const struct server *server)
{
	for (int i = 0; i < MAX_SERVERS; i++) {
		if (running[i] == server) {
			return &running[i];
		}
	}
	report_require(false, "more than %d servers at a time", MAX_SERVERS);
	return NULL;
}

/* Asked to end, it must do so with status 0. */
static void stop(struct server *server)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int status = 0;
	pid_t ended = 0;

	(void)kill(server->pid, SIGTERM);
	for (int waited = 0; ended == 0 && waited < PATIENCE_MS; waited += 2) {
		ended = waitpid(server->pid, &status, WNOHANG);
		(void)nanosleep(&pause, NULL);
	}
	if (ended == server->pid) {
		server->pid = 0;
	}
	report_require(ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0,
		       "a server did not end as it should");
}

void server_stop(struct server *server)
{
	stop(server);
	end(server);
	*find_running(server) = NULL;
}

/* ---- starting ---- */

static void make_dir(struct server *server)
{
	static bool caught;

	if (!caught) {
		catch_signals();
		caught = true;
	}
	*server = (struct server){ .pid = 0 };
	(void)snprintf(server->dir, sizeof(server->dir), "/tmp/rationd-bench-XXXXXX");
	report_require(mkdtemp(server->dir) != NULL, "mkdtemp: %s", strerror(errno));
	(void)snprintf(server->socket, sizeof(server->socket), "%s/socket", server->dir);
	*find_running(NULL) = server;
}

static void in_dir(const struct server *server, const char *name, char ret_path[64])
{
	(void)snprintf(ret_path, 64, "%s/%s", server->dir, name);
}

static void become(const struct server *server, const char *program, const char *const *argv,
		   int cpu)
{
	char path[64];
	int log;

	in_dir(server, "log", path);
	log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("JOURNAL_STREAM");
	(void)dup2(log, STDOUT_FILENO);
	(void)dup2(log, STDERR_FILENO);
	if (cpu != SERVER_ANY_CPU) {
		server_pin(cpu);
	}
	(void)execvp(program, (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int try_port(unsigned port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	report_require(fd >= 0, "socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int try_connect(const struct server *server)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd;

	if (server->port != 0) {
		return try_port(server->port);
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	report_require(fd >= 0, "socket: %s", strerror(errno));
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", server->socket);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void start(struct server *server, const char *program, const char *const *argv, int cpu)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int fd = -1;

	(void)fflush(stdout);
	server->pid = fork();
	report_require(server->pid >= 0, "fork: %s", strerror(errno));
	if (server->pid == 0) {
		become(server, program, argv, cpu);
	}
	for (int waited = 0; fd < 0 && waited < PATIENCE_MS; waited += 2) {
		report_require(waitpid(server->pid, NULL, WNOHANG) == 0,
			       "%s has ended before it began", program);
		(void)nanosleep(&pause, NULL);
		fd = try_connect(server);
	}
	report_require(fd >= 0, "%s does not listen", program);
	(void)close(fd);
}

static void start_rationd(struct server *server, bool keeps, int cpu)
{
	const char *program = getenv("RATIOND");
	char conf[64], state[64];
	const char *argv[] = { "rationd", "--config", conf, "--ephemeral", NULL, NULL };

	in_dir(server, "conf", conf);
	in_dir(server, "state.db", state);
	if (keeps) {
		argv[3] = "--state";
		argv[4] = state;
	}
	start(server, program != NULL ? program : RATIOND_PROGRAM, argv, cpu);
}

static void configure_rationd(const struct server *server, const char *config)
{
	char conf[64];
	FILE *file;

	in_dir(server, "conf", conf);
	file = fopen(conf, "we");
	report_require(file != NULL, "%s: %s", conf, strerror(errno));
	(void)fprintf(file, "[daemon]\nlisten = unix:%s\n%s", server->socket, config);
	(void)fclose(file);
}

void server_start_rationd(struct server *server, const char *config, int cpu)
{
	make_dir(server);
	configure_rationd(server, config);
	start_rationd(server, /* keeps= */ false, cpu);
}

void server_start_keeping(struct server *server, const char *config)
{
	make_dir(server);
	configure_rationd(server, config);
	start_rationd(server, /* keeps= */ true, SERVER_ANY_CPU);
}

double server_start_again(struct server *server)
{
	double before;

	stop(server);
	before = report_wall_seconds();
	start_rationd(server, /* keeps= */ true, SERVER_ANY_CPU);
	return report_wall_seconds() - before;
}

void server_start_redis(struct server *server, int cpu)
{
	const char *const argv[] = {
		"redis-server", "--port", "0", "--unixsocket", server->socket, "--dir",
		server->dir,	"--save", "",  "--appendonly", "no",	       NULL,
	};

	make_dir(server);
	start(server, "redis-server", argv, cpu);
}

void server_start_tarantool(struct server *server, const char *procedures, int cpu)
{
	char conf[64];
	const char *const argv[] = { "tarantool", conf, NULL };
	FILE *file;

	make_dir(server);
	in_dir(server, "conf", conf);
	file = fopen(conf, "we");
	report_require(file != NULL, "%s: %s", conf, strerror(errno));
	(void)fprintf(file,
		      "%s"
		      "box.cfg { work_dir = '%s', wal_mode = 'none', checkpoint_interval = 0,\n"
		      "          log_level = 2 }\n"
		      "box.schema.user.grant('guest', 'execute', 'universe')\n"
		      "box.cfg { listen = '%s' }\n",
		      procedures, server->dir, server->socket);
	(void)fclose(file);
	start(server, "tarantool", argv, cpu);
}

/* As it comes, but for what it does beside; that takes processor time which is not StatsD's. */
static const char netdata_conf[] =
	"[global]\n\thostname = bench\n\trun as user = %s\n\tprocess scheduling policy = keep\n"
	"[directories]\n\tconfig = %s\n\tstock config = %s\n\tcache = %s\n\tlib = %s\n\tlog = %s\n\thome = %s\n"
	"[db]\n\tmode = ram\n[ml]\n\tenabled = no\n[health]\n\tenabled = no\n[registry]\n\tenabled = no\n"
	"[cloud]\n\tenabled = no\n[web]\n\tbind to = 127.0.0.1:%u\n"
	"[plugins]\n\ttimex = no\n\tchecks = no\n\tidlejitter = no\n\ttc = no\n\tdiskspace = no\n\tproc = no\n"
	"\tcgroups = no\n\tenable running new plugins = no\n\tapps = no\n\tcharts.d = no\n\tebpf = no\n"
	"\tpython.d = no\n\tgo.d = no\n\tnode.d = no\n\tfping = no\n\tioping = no\n\tperf = no\n\tnfacct = no\n"
	"\tslabinfo = no\n\tfreeipmi = no\n"
	"[statsd]\n\tbind to = udp:127.0.0.1:%u tcp:127.0.0.1:%u\n"
	"\tcreate private charts for metrics matching = !*\n";

void server_start_netdata(struct server *server, unsigned port, int cpu)
{
	const struct passwd *user = getpwuid(geteuid());
	char conf[64], pid[64];
	const char *const argv[] = { "netdata", "-D", "-c", conf, "-P", pid, NULL };
	const char *dir;
	FILE *file;

	make_dir(server);
	server->port = port;
	dir = server->dir;
	in_dir(server, "netdata.conf", conf);
	in_dir(server, "pid", pid);
	file = fopen(conf, "we");
	report_require(file != NULL && user != NULL, "%s: %s", conf, strerror(errno));
	(void)fprintf(file, netdata_conf, user->pw_name, dir, dir, dir, dir, dir, dir, port + 1,
		      port, port);
	(void)fclose(file);
	start(server, server_exists("netdata") ? "netdata" : "/usr/sbin/netdata", argv, cpu);
}

bool server_exists(const char *program)
{
	const char *at = getenv("PATH");
	char path[256];

	while (at != NULL && *at != '\0') {
		size_t len = strcspn(at, ":");

		(void)snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, program);
		if (access(path, X_OK) == 0) {
			return true;
		}
		at += len + (at[len] == ':');
	}
	return false;
}

/* ---- measuring ---- */

int server_connect(const struct server *server)
{
	int fd = try_connect(server);

	report_require(fd >= 0, "connect: %s", strerror(errno));
	return fd;
}

int64_t server_cpu_ns(const struct server *server)
{
	struct timespec used = { 0 };
	clockid_t id;

	report_require(clock_getcpuclockid(server->pid, &id) == 0 && clock_gettime(id, &used) == 0,
		       "no processor time of a server");
	return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

int64_t server_memory(const struct server *server)
{
	char path[64];
	char line[128];
	long long kib = 0;
	FILE *file;

	/* The exact sum over all mappings; other files lag behind. */
	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)server->pid);
	file = fopen(path, "re");
	report_require(file != NULL, "%s: %s", path, strerror(errno));
	while (kib == 0 && fgets(line, sizeof(line), file) != NULL) {
		kib = strncmp(line, "Rss:", 4) == 0 ? strtoll(line + 4, NULL, 10) : 0;
	}
	(void)fclose(file);
	report_require(kib > 0, "%s says nothing of Rss", path);
	return kib * 1024;
}

void server_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu == SERVER_ANY_CPU) {
		memset(&set, 0xff, sizeof(set)); /* those that there are */
	} else {
		CPU_SET((size_t)cpu, &set);
	}
	(void)sched_setaffinity(0, sizeof(set), &set);
}
