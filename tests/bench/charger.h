#pragma once
/*
 * charger: a connection that charges 1 to a path and the two above it, strictly, to whichever server keeps the limits: rationd,
 * redis-server with a script, Tarantool with a stored procedure. What is refused ends the benchmark, for no limit is near.
 *
 * Requests are made beforehand, so that sending them is a copy, whatever the server.
 */
#include "tests/bench/link.h"

#include <stddef.h>
#include <stdint.h>

#define CHARGER_MAX INT64_C(1000000000000000) /* every node's limit */
#define CHARGER_PATH_BYTES 30u
#define CHARGER_MAX_PIPELINE 256u

struct charger_path {
	char bytes[CHARGER_PATH_BYTES + 8]; /* as much as snprintf fears */
};

/* Below one metric: `count` leaves in `groups`, each a path of three segments. */
struct charger_tree {
	struct charger_path *paths;
	uint32_t count, groups;
};

enum charger_kind {
	CHARGER_RATIOND,
	CHARGER_REDIS,	     /* the script as one would write it */
	CHARGER_REDIS_TUNED, /* and with all done to it that makes it faster */
	CHARGER_TARANTOOL,
};

struct charger {
	enum charger_kind kind;
	struct link link;
	const struct charger_tree *tree;
	struct charger_request *requests; /* of each leaf */
	uint32_t next_number;		  /* of an operation of rationd */
	int64_t charged;
	uint8_t *out;
};

void charger_tree_init(struct charger_tree *tree, uint32_t count, uint32_t groups);
void charger_tree_deinit(struct charger_tree *tree);
/* The metric, and the groups below it. */
#define CHARGER_METRIC "requests"
void charger_group(uint32_t group, char ret_path[32]);

/* Limit every node of the tree, in one plane without a window. Once for a server; redis has nothing to be told. */
void charger_limit(struct link *link, enum charger_kind kind, const struct charger_tree *tree);

/* `session`: of rationd, not 0. */
void charger_open(struct charger *charger, enum charger_kind kind, const struct server *server,
		  const struct charger_tree *tree, uint8_t session);
void charger_close(struct charger *charger);

/* Say hello, as far as the server asks for it. */
void charger_greet(struct link *link, enum charger_kind kind, uint8_t session);

/* Charge each of these leaves, all in one write. */
void charger_send(struct charger *charger, const uint32_t *leaves, size_t n);
/* Receive n answers; all must be granted. */
void charger_receive(struct charger *charger, size_t n);
/* Is a whole answer there? Without a look at what it says. */
bool charger_is_answered(const struct charger *charger);

/* What is counted of a path. */
int64_t charger_usage(struct charger *charger, const char *path);
