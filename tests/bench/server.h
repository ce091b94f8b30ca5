#pragma once
/*
 * server: a rationd, or a redis-server, Tarantool or netdata to compare it with, for as long as a benchmark runs. Each listens on a unix socket in
 * a temporary directory of its own.
 *
 * Whatever happens to the benchmark, its servers end with it: at exit, on a signal, and when it is killed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVER_ANY_CPU (-1)

struct server {
	pid_t pid;
	char dir[40];
	char socket[56];
	unsigned port; /* 0: it listens on `socket`; else it is ready when it listens there */
};

/* `config`: lines for [daemon], may be empty. `cpu`: the one to run on, or SERVER_ANY_CPU. $RATIOND names another program than the one built. */
void server_start_rationd(struct server *server, const char *config, int cpu);
/* The same, with a state file, state.db in its folder. */
void server_start_keeping(struct server *server, const char *config);
/* Stop that one and start it on the same file; the seconds from the start until it takes connections. */
double server_start_again(struct server *server);
/* Nothing is saved, one thread for the sockets: as it comes. */
void server_start_redis(struct server *server, int cpu);
/* Nothing is saved. With these procedures, in Lua, which anyone may call. */
void server_start_tarantool(struct server *server, const char *procedures, int cpu);
/*
 * netdata with nothing on but its StatsD server, at this port of 127.0.0.1, UDP and TCP, and its own pages at the next port. It makes no charts of single
 * metrics.
 */
void server_start_netdata(struct server *server, unsigned port, int cpu);
/* Is there a program of this name to be started? */
bool server_exists(const char *program);
void server_stop(struct server *server);

/* Processor time of all its threads so far, in nanoseconds. */
int64_t server_cpu_ns(const struct server *server);
/* Resident memory in bytes. */
int64_t server_memory(const struct server *server);

/* A blocking connection to it. */
int server_connect(const struct server *server);

/* Put the calling thread on one CPU, or on SERVER_ANY_CPU again. */
void server_pin(int cpu);
