/*
 * Strict charges over three levels, each with a limit far away, over a unix socket: beside redis-server with a script that checks and
 * increments, and beside a stored procedure of Tarantool, where there is one.
 *
 *	bench-wire-charge [ROUNDS]	an odd number; default 9
 *
 * Pipelined: 100 charges of random paths in one write, then their 100 answers; charges per second of the server's processor time. One
 * by one: what one client waits for one answer, where the scheduler puts client and servers, and pinned. Then rationd alone: the
 * same with 1,000 and with 100,000 nodes with limits, and what memory the limits of those take.
 *
 * The cases take turns within a round, ratios are medians of the rounds' ratios. Every charge must be granted, and usage at the end
 * be what was charged, at every node, on every server.
 */
#include "tests/bench/charger.h"
#include "tests/bench/report.h"
#include "tests/bench/server.h"
#include "tests/bench/tarantool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ROUNDS 99u
#define N_KINDS 4u
#define PIPELINE 100u
#define LEAVES 1000u
#define GROUPS 10u
#define PIPELINES 1000u /* in a round, of the slowest; the faster do more */
#define BLOCK 2000u	/* single charges in a round */
#define WARM_UP 200u
#define N_FEW 1000u /* nodes, the inner ones with them */
#define N_MANY 100000u
#define PER_GROUP 1000u
#define SCALE_PIPELINES 3000u
#define MAX_ASKED 2000u

static unsigned n_rounds;

static const struct contender {
	const char *name, *pipelined;
	size_t pipelines;
} kinds[N_KINDS] = {
	[CHARGER_RATIOND] = { "rationd, Charge", "rationd, Charge, pipelines of 100",
			      PIPELINES * 10 },
	[CHARGER_REDIS] = { "redis-server, EVALSHA", "redis-server, EVALSHA, pipelines of 100",
			    PIPELINES },
	[CHARGER_REDIS_TUNED] = { "redis-server, EVALSHA, tuned script",
				  "redis-server, EVALSHA, tuned script, pipelines of 100",
				  PIPELINES },
	[CHARGER_TARANTOOL] = { "Tarantool, CALL", "Tarantool, CALL, pipelines of 100",
				PIPELINES * 5 },
};

static uint32_t random_leaf(const struct charger_tree *tree, uint32_t stride)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % (tree->count / stride) * stride;
}

static double median_ratio(const double *a, const double *b)
{
	double ratios[MAX_ROUNDS];

	for (unsigned i = 0; i < n_rounds; i++) {
		ratios[i] = a[i] / b[i];
	}
	return report_median(ratios, n_rounds);
}

/* Each leaf once, so that there are no leaves without usage. */
static void charge_all(struct charger *charger, int64_t *charged)
{
	const uint32_t count = charger->tree->count;
	uint32_t leaves[PIPELINE];

	for (uint32_t i = 0; i < count; i += PIPELINE) {
		uint32_t n = count - i < PIPELINE ? count - i : PIPELINE;

		for (uint32_t j = 0; j < n; j++) {
			leaves[j] = i + j;
			charged[i + j]++;
		}
		charger_send(charger, leaves, n);
		charger_receive(charger, n);
	}
}

/* ---- the servers ---- */

struct stage {
	struct charger_tree tree;
	struct server servers[3];
	struct server *server_of[N_KINDS];
	struct charger chargers[N_KINDS];
	int64_t *charged[3]; /* of each server and leaf */
	unsigned n_kinds;
};

static unsigned server_number(const struct stage *stage, unsigned kind)
{
	return (unsigned)(stage->server_of[kind] - stage->servers);
}

static void stage_open(struct stage *stage, int cpu)
{
	*stage = (struct stage){ .n_kinds = server_exists("tarantool") ? N_KINDS : N_KINDS - 1 };
	charger_tree_init(&stage->tree, LEAVES, GROUPS);
	server_start_rationd(&stage->servers[0], "", cpu);
	server_start_redis(&stage->servers[1], cpu);
	if (stage->n_kinds == N_KINDS) {
		server_start_tarantool(&stage->servers[2], tarantool_procedures, cpu);
	}
	for (unsigned i = 0; i < 3; i++) {
		stage->charged[i] = calloc(LEAVES, sizeof(*stage->charged[i]));
		report_require(stage->charged[i] != NULL, "no memory");
	}
	for (unsigned i = 0; i < stage->n_kinds; i++) {
		static const unsigned numbers[] = { 0, 1, 1, 2 };

		stage->server_of[i] = &stage->servers[numbers[i]];
		charger_open(&stage->chargers[i], (enum charger_kind)i, stage->server_of[i],
			     &stage->tree, 1);
		charger_limit(&stage->chargers[i].link, (enum charger_kind)i, &stage->tree);
		charge_all(&stage->chargers[i], stage->charged[numbers[i]]);
	}
}

static void check_usage(struct charger *charger, const char *path, int64_t charged)
{
	int64_t usage = charger_usage(charger, path);

	report_require(usage == charged, "%s: usage of %s is %lld, but %lld were charged",
		       kinds[charger->kind].name, path, (long long)usage, (long long)charged);
}

/* Every node has what was charged to it and below; of very many leaves some are asked for, and the sums of all. */
static void check_tree(struct charger *charger, const int64_t *charged)
{
	const struct charger_tree *tree = charger->tree;
	int64_t all = 0;
	char path[32];

	for (uint32_t i = 0; i < tree->groups; i++) {
		int64_t sum = 0;

		for (uint32_t j = i; j < tree->count; j += tree->groups) {
			if (j / tree->groups % (1 + tree->count / MAX_ASKED) == 0) {
				check_usage(charger, tree->paths[j].bytes, charged[j]);
			}
			sum += charged[j];
		}
		charger_group(i, path);
		check_usage(charger, path, sum);
		all += sum;
	}
	check_usage(charger, CHARGER_METRIC, all);
}

static void stage_close(struct stage *stage)
{
	for (unsigned i = 0; i < stage->n_kinds; i++) {
		check_tree(&stage->chargers[i], stage->charged[server_number(stage, i)]);
	}
	for (unsigned i = 0; i < stage->n_kinds; i++) {
		charger_close(&stage->chargers[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		if (stage->servers[i].pid > 0) {
			server_stop(&stage->servers[i]);
		}
		free(stage->charged[i]);
	}
	charger_tree_deinit(&stage->tree);
}

/* ---- where they run ---- */

static const struct placement {
	const char *pipelined, *waits; /* titles */
	int client, servers;
	bool held; /* against the bounds */
} placements[] = {
	{ "Charges over 3 levels per second of the server's processor time; unix socket, 1,000 paths",
	  "Round trips of a charge, one client, nothing pipelined", SERVER_ANY_CPU, SERVER_ANY_CPU,
	  true },
	{ "The same, client and servers on one CPU", "The same, client and servers on one CPU", 0,
	  0, false },
	{ "The same, client on one CPU, servers on another",
	  "The same, client on one CPU, servers on another", 0, 1, false },
};

static void each_placement(void (*bench)(const struct placement *))
{
	for (size_t i = 0; i < sizeof(placements) / sizeof(placements[0]); i++) {
		if (placements[i].servers < sysconf(_SC_NPROCESSORS_ONLN)) {
			bench(&placements[i]);
		}
	}
}

static void show_ratio(const char *what, double ratio, const char *bound, enum verdict verdict,
		       bool held)
{
	report_line(what, ratio, held ? bound : NULL, held ? verdict : VERDICT_NONE, "%s", "");
}

/* ---- pipelined ---- */

/* Charges per second of the server's processor time; by the clock. */
static double run_pipelines(struct charger *charger, const struct server *server, size_t n,
			    uint32_t stride, int64_t *charged, double *ret_wall)
{
	double start = report_wall_seconds();
	int64_t cpu = server_cpu_ns(server);
	uint32_t leaves[PIPELINE];

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < PIPELINE; j++) {
			leaves[j] = random_leaf(charger->tree, stride);
			charged[leaves[j]]++;
		}
		charger_send(charger, leaves, PIPELINE);
		charger_receive(charger, PIPELINE);
	}
	*ret_wall = (double)(n * PIPELINE) / (report_wall_seconds() - start);
	return (double)(n * PIPELINE) / ((double)(server_cpu_ns(server) - cpu) / 1e9);
}

static void show_pipelined(const struct placement *placement, double (*per_cpu)[MAX_ROUNDS],
			   double (*per_wall)[MAX_ROUNDS], unsigned n_kinds)
{
	double ratio = median_ratio(per_cpu[CHARGER_RATIOND], per_cpu[CHARGER_REDIS]);
	char what[96];

	report_table(placement->pipelined);
	for (unsigned i = 0; i < n_kinds; i++) {
		report_line(kinds[i].pipelined, 0, NULL, VERDICT_NONE, "%.0f k/s",
			    report_median(per_cpu[i], n_rounds) / 1e3);
	}
	for (unsigned i = 0; i < n_kinds; i++) {
		(void)snprintf(what, sizeof(what), "%s, by the clock", kinds[i].pipelined);
		report_line(what, 0, NULL, VERDICT_NONE, "%.0f k/s",
			    report_median(per_wall[i], n_rounds) / 1e3);
	}
	show_ratio("rationd : redis-server", ratio, ">= 20", report_at_least(ratio, 20),
		   placement->held);
	show_ratio("rationd : redis-server, tuned script",
		   median_ratio(per_cpu[CHARGER_RATIOND], per_cpu[CHARGER_REDIS_TUNED]), NULL,
		   VERDICT_NONE, false);
	if (n_kinds == N_KINDS) {
		ratio = median_ratio(per_cpu[CHARGER_RATIOND], per_cpu[CHARGER_TARANTOOL]);
		show_ratio("rationd : Tarantool", ratio, ">= 2", report_at_least(ratio, 2),
			   placement->held);
	} else {
		(void)printf("Tarantool is not installed: nothing is said of it\n");
	}
}

static void bench_pipelined(const struct placement *placement)
{
	static double per_cpu[N_KINDS][MAX_ROUNDS], per_wall[N_KINDS][MAX_ROUNDS];
	static struct stage stage;

	stage_open(&stage, placement->servers);
	server_pin(placement->client);
	for (unsigned round = 0; round < n_rounds; round++) {
		for (unsigned i = 0; i < stage.n_kinds; i++) {
			int64_t *charged = stage.charged[server_number(&stage, i)];

			(void)run_pipelines(&stage.chargers[i], stage.server_of[i],
					    kinds[i].pipelines / 20, 1, charged,
					    &per_wall[i][round]);
			per_cpu[i][round] =
				run_pipelines(&stage.chargers[i], stage.server_of[i],
					      kinds[i].pipelines, 1, charged, &per_wall[i][round]);
		}
	}
	server_pin(SERVER_ANY_CPU);
	show_pipelined(placement, per_cpu, per_wall, stage.n_kinds);
	stage_close(&stage);
}

/* ---- one by one ---- */

struct waits {
	double p50[MAX_ROUNDS], cpu[MAX_ROUNDS]; /* microseconds */
	double *all;				 /* BLOCK a round */
};

/* Microseconds from the request's first byte to the answer's last. */
static double round_trip(struct charger *charger, int64_t *charged)
{
	uint32_t leaf = random_leaf(charger->tree, 1);
	double start = report_wall_seconds(), end;

	charger_send(charger, &leaf, 1);
	do {
		link_fill(&charger->link);
		end = report_wall_seconds();
	} while (!charger_is_answered(charger));
	charger_receive(charger, 1);
	charged[leaf]++;
	return (end - start) * 1e6;
}

static void run_block(struct stage *stage, unsigned kind, struct waits *waits, unsigned round)
{
	int64_t *charged = stage->charged[server_number(stage, kind)];
	double *block = waits->all + (size_t)round * BLOCK;
	int64_t cpu;

	for (size_t i = 0; i < WARM_UP; i++) {
		(void)round_trip(&stage->chargers[kind], charged);
	}
	cpu = server_cpu_ns(stage->server_of[kind]);
	for (size_t i = 0; i < BLOCK; i++) {
		block[i] = round_trip(&stage->chargers[kind], charged);
	}
	waits->cpu[round] = (double)(server_cpu_ns(stage->server_of[kind]) - cpu) / 1e3 / BLOCK;
	waits->p50[round] = report_median(block, BLOCK);
}

static void show_waits(const struct placement *placement, struct waits *waits, unsigned n_kinds)
{
	const size_t n = (size_t)n_rounds * BLOCK;
	double ratio = median_ratio(waits[CHARGER_RATIOND].p50, waits[CHARGER_REDIS].p50);
	char what[96];

	report_table(placement->waits);
	for (unsigned i = 0; i < n_kinds; i++) {
		report_line(kinds[i].name, 0, NULL, VERDICT_NONE, "p50 %.1f us",
			    report_quantile(waits[i].all, n, 0.5));
		(void)snprintf(what, sizeof(what), "%s, 99 of 100", kinds[i].name);
		report_line(what, 0, NULL, VERDICT_NONE, "p99 %.1f us",
			    report_quantile(waits[i].all, n, 0.99));
		(void)snprintf(what, sizeof(what), "%s, processor time of the server",
			       kinds[i].name);
		report_line(what, 0, NULL, VERDICT_NONE, "%.1f us",
			    report_median(waits[i].cpu, n_rounds));
	}
	show_ratio("rationd : redis-server, medians", ratio, "<= 0.80", report_at_most(ratio, 0.8),
		   placement->held);
	show_ratio("rationd : redis-server, tuned script, medians",
		   median_ratio(waits[CHARGER_RATIOND].p50, waits[CHARGER_REDIS_TUNED].p50), NULL,
		   VERDICT_NONE, false);
	if (n_kinds == N_KINDS) {
		show_ratio("rationd : Tarantool, medians",
			   median_ratio(waits[CHARGER_RATIOND].p50, waits[CHARGER_TARANTOOL].p50),
			   NULL, VERDICT_NONE, false);
	}
}

static void bench_one_by_one(const struct placement *placement)
{
	static struct stage stage;
	struct waits waits[N_KINDS];

	for (unsigned i = 0; i < N_KINDS; i++) {
		waits[i].all = calloc((size_t)n_rounds * BLOCK, sizeof(*waits[i].all));
		report_require(waits[i].all != NULL, "no memory");
	}
	stage_open(&stage, placement->servers);
	server_pin(placement->client);
	for (unsigned round = 0; round < n_rounds; round++) {
		for (unsigned i = 0; i < stage.n_kinds; i++) {
			run_block(&stage, i, &waits[i], round);
		}
	}
	server_pin(SERVER_ANY_CPU);
	show_waits(placement, waits, stage.n_kinds);
	stage_close(&stage);
	for (unsigned i = 0; i < N_KINDS; i++) {
		free(waits[i].all);
	}
}

/* ---- many nodes ---- */

struct forest {
	struct server server;
	struct charger_tree tree;
	struct charger charger;
	int64_t *charged;
	double bytes; /* of memory for the limits of one node */
};

/* All nodes are made and charged before the first limit is set, so that what memory grows by then is the limits'. */
static void forest_open(struct forest *forest, uint32_t nodes)
{
	uint32_t groups = (nodes + PER_GROUP - 1) / PER_GROUP;
	int64_t before;

	charger_tree_init(&forest->tree, nodes - 1 - groups, groups);
	forest->charged = calloc(forest->tree.count, sizeof(*forest->charged));
	report_require(forest->charged != NULL, "no memory");
	server_start_rationd(&forest->server, "", SERVER_ANY_CPU);
	charger_open(&forest->charger, CHARGER_RATIOND, &forest->server, &forest->tree, 1);
	link_intern(&forest->charger.link, forest->tree.paths[0].bytes,
		    sizeof(forest->tree.paths[0]), CHARGER_PATH_BYTES, forest->tree.count);
	charge_all(&forest->charger, forest->charged);
	before = server_memory(&forest->server);
	charger_limit(&forest->charger.link, CHARGER_RATIOND, &forest->tree);
	charge_all(&forest->charger, forest->charged);
	forest->bytes = (double)(server_memory(&forest->server) - before) / nodes;
}

static void forest_close(struct forest *forest)
{
	check_tree(&forest->charger, forest->charged);
	charger_close(&forest->charger);
	server_stop(&forest->server);
	free(forest->charged);
	charger_tree_deinit(&forest->tree);
}

static const struct spread {
	const char *what;
	bool many;
	uint32_t leaves; /* charged; 0: all */
	const char *bound;
} spreads[] = {
	{ "1,000 nodes with limits", false, 0, NULL },
	{ "100,000 nodes with limits, 1,000 of them charged", true, N_FEW, "<= 1.25" },
	{ "100,000 nodes with limits, all charged at random", true, 0, NULL },
};

#define N_SPREADS (sizeof(spreads) / sizeof(spreads[0]))

static void bench_forests(void)
{
	static double costs[N_SPREADS][MAX_ROUNDS];
	static struct forest forests[2];
	double wall;

	forest_open(&forests[0], N_FEW);
	forest_open(&forests[1], N_MANY);
	for (unsigned round = 0; round < n_rounds; round++) {
		for (size_t i = 0; i < N_SPREADS; i++) {
			struct forest *forest = &forests[spreads[i].many];
			uint32_t stride =
				spreads[i].leaves > 0 ? forest->tree.count / spreads[i].leaves : 1;

			(void)run_pipelines(&forest->charger, &forest->server, SCALE_PIPELINES / 20,
					    stride, forest->charged, &wall);
			costs[i][round] = 1e9 / run_pipelines(&forest->charger, &forest->server,
							      SCALE_PIPELINES, stride,
							      forest->charged, &wall);
		}
	}
	report_table(
		"rationd's processor time for a charge, by number of nodes with limits (ratio: to 1,000 nodes)");
	for (size_t i = 0; i < N_SPREADS; i++) {
		double ratio = median_ratio(costs[i], costs[0]);

		report_line(spreads[i].what, ratio, spreads[i].bound,
			    spreads[i].bound != NULL ? report_at_most(ratio, 1.25) : VERDICT_NONE,
			    "%.0f ns", report_median(costs[i], n_rounds));
	}
	report_line("resident memory for the limits of one node, of 100,000", 0, "<= 300 B",
		    report_at_most(forests[1].bytes, 300), "%.1f B/node", forests[1].bytes);
	for (size_t i = 0; i < 2; i++) {
		forest_close(&forests[i]);
	}
}

int main(int argc, char **argv)
{
	n_rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 9;
	report_require(n_rounds % 2 == 1 && n_rounds <= MAX_ROUNDS,
		       "usage: bench-wire-charge [ROUNDS], an odd number below 100");
	each_placement(bench_pipelined);
	each_placement(bench_one_by_one);
	bench_forests();
	return 0;
}
