/*
 * All interleavings of a few threads' atomic steps, one after another: ration_hook(), which stands between the steps, is a switch
 * to the scheduler here, and the scheduler tries every choice of who goes next. The threads are contexts of one thread, so what a
 * processor may reorder is not covered: that is the stress tests' part.
 */
#include "tests/support/test.h"

#include "lib/base/hook.h"
#include "lib/count/bank.h"
#include "lib/count/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define BATCH INT64_C(4)
#define MAX_TASKS 3
#define MAX_STEPS 64
#define MAX_OPS 6
#define STACK_SIZE ((size_t)64 * 1024)

/* ---- scheduler ---- */

struct task {
	void (*body)(struct task *task);
	int64_t ops[MAX_OPS]; /* amounts; 0 ends them */
	bool done;
	ucontext_t context;
	char *stack;
};

static struct scheduler {
	struct task tasks[MAX_TASKS];
	size_t n_tasks;
	struct task *current; /* NULL: the scheduler itself runs */
	ucontext_t context;

	/* The choice at each step of this run, and how many there were. */
	size_t choice[MAX_STEPS], alternatives[MAX_STEPS];
	size_t n_steps;
	uint64_t runs;
} scheduler;

/* In place of the yields of lib/base/hook.c. */
void ration_hook(void)
{
	struct task *task = scheduler.current;

	if (task != NULL) {
		scheduler.current = NULL;
		(void)swapcontext(&task->context, &scheduler.context);
	}
}

static void task_main(unsigned index)
{
	struct task *task = &scheduler.tasks[index];

	task->body(task);
	task->done = true;
	scheduler.current = NULL;
}

static void start(unsigned index)
{
	struct task *task = &scheduler.tasks[index];

	if (task->stack == NULL) {
		task->stack = malloc(STACK_SIZE);
		assert_non_null(task->stack);
	}
	task->done = false;
	(void)getcontext(&task->context);
	task->context.uc_stack.ss_sp = task->stack;
	task->context.uc_stack.ss_size = STACK_SIZE;
	task->context.uc_link = &scheduler.context;
	makecontext(&task->context, (void (*)(void))task_main, 1, index);
}

static struct task *alive(size_t nth)
{
	for (size_t i = 0; i < scheduler.n_tasks; i++) {
		if (!scheduler.tasks[i].done && nth-- == 0) {
			return &scheduler.tasks[i];
		}
	}
	return NULL;
}

static size_t n_alive(void)
{
	size_t n = 0;

	while (alive(n) != NULL) {
		n++;
	}
	return n;
}

/* One run by the choices made so far, first choices beyond them. */
static void run_once(void (*after_step)(void))
{
	size_t step = 0;

	for (unsigned i = 0; i < scheduler.n_tasks; i++) {
		start(i);
	}
	for (size_t n = n_alive(); n > 0; n = n_alive(), step++) {
		assert_true(step < MAX_STEPS);
		if (step >= scheduler.n_steps) {
			scheduler.choice[step] = 0;
		}
		scheduler.alternatives[step] = n;
		scheduler.current = alive(scheduler.choice[step]);
		(void)swapcontext(&scheduler.context, &scheduler.current->context);
		after_step();
	}
	scheduler.n_steps = step;
	scheduler.runs++;
}

/* The next choices: the last step that has another one takes it. False: there are none. */
static bool next_choices(void)
{
	while (scheduler.n_steps > 0) {
		size_t last = scheduler.n_steps - 1;

		if (scheduler.choice[last] + 1 < scheduler.alternatives[last]) {
			scheduler.choice[last]++;
			return true;
		}
		scheduler.n_steps--;
	}
	return false;
}

static void explore(void (*before)(void), void (*after_step)(void), void (*after)(void))
{
	scheduler.n_steps = 0;
	scheduler.runs = 0;
	do {
		before();
		run_once(after_step);
		after();
	} while (next_choices());
	for (size_t i = 0; i < MAX_TASKS; i++) {
		free(scheduler.tasks[i].stack);
	}
	print_message("%llu interleavings\n", (unsigned long long)scheduler.runs);
	memset(&scheduler, 0, sizeof(scheduler));
}

static void add_task(void (*body)(struct task *task), const int64_t *ops, size_t n_ops)
{
	struct task *task = &scheduler.tasks[scheduler.n_tasks++];

	assert_true(scheduler.n_tasks <= MAX_TASKS && n_ops <= MAX_OPS);
	task->body = body;
	for (size_t i = 0; i < n_ops; i++) {
		task->ops[i] = ops[i];
	}
}

/* ---- one slot ---- */

static struct world {
	struct slot slot;
	int64_t total; /* no atomic: one thread */
	int64_t added; /* by adds that have returned */
	unsigned in_slow_path;
	uint64_t last_published;
	bool growing;

	int64_t most_held; /* over all runs */
} world;

static void claim(void)
{
	int64_t growth;

	if (slot_claim(&world.slot, &growth)) {
		world.total += growth;
	}
}

static void owner(struct task *task)
{
	for (size_t i = 0; i < MAX_OPS && task->ops[i] != 0; i++) {
		if (!slot_add_owner(&world.slot, task->ops[i], BATCH)) {
			world.in_slow_path++;
			slot_put(&world.slot, task->ops[i]);
			claim();
			world.in_slow_path--;
		}
		world.added += task->ops[i];
	}
}

/* One of several writers: its slow path is another claim and another try. */
static void writer(struct task *task)
{
	for (size_t i = 0; i < MAX_OPS && task->ops[i] != 0; i++) {
		while (!slot_add_c11(&world.slot, task->ops[i], BATCH)) {
			claim();
		}
		world.added += task->ops[i];
	}
}

static void claimer(struct task *task)
{
	for (size_t i = 0; i < MAX_OPS && task->ops[i] != 0; i++) {
		claim();
	}
}

static void slot_before(void)
{
	/* Near the wrap, which must not matter. */
	atomic_init(&world.slot.count, UINT64_MAX - 1);
	atomic_init(&world.slot.published, UINT64_MAX - 1);
	world.total = 0;
	world.added = 0;
	world.last_published = UINT64_MAX - 1;
}

static void slot_after_step(void)
{
	int64_t held = slot_held(&world.slot);
	uint64_t published = atomic_load_explicit(&world.slot.published, memory_order_relaxed);

	if (world.growing) {
		assert_true(held >= 0);
		assert_true((int64_t)(published - world.last_published) >= 0);
	}
	world.last_published = published;
	held = held < 0 ? -held : held;
	if (world.in_slow_path == 0 && held > world.most_held) {
		world.most_held = held;
	}
}

static void slot_after(void)
{
	claim();
	assert_int_equal(world.total, world.added);
	assert_int_equal(slot_held(&world.slot), 0);
	assert_true(slot_count(&world.slot) - (UINT64_MAX - 1) == (uint64_t)world.added);
}

static void explore_slot(bool growing, int64_t bound)
{
	world.growing = growing;
	world.most_held = 0;
	explore(slot_before, slot_after_step, slot_after);
	print_message("at most %lld held back at batch %lld, bound %lld\n",
		      (long long)world.most_held, (long long)BATCH, (long long)bound);
	assert_true(world.most_held <= bound);
}

static void test_growing(void **state)
{
	static const int64_t adds[][3] = { { 1, 2, 3 }, { 3, 1, 3 }, { 4, 1, 2 }, { 3, 3, 3 } };
	static const int64_t twice[] = { 1, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(adds) / sizeof(adds[0]); i++) {
		add_task(owner, adds[i], 3);
		add_task(claimer, twice, 2);
		explore_slot(true, SLOT_BOUND_GROWING(BATCH));
	}
	add_task(owner, adds[0], 2);
	add_task(claimer, twice, 1);
	add_task(claimer, twice, 1);
	explore_slot(true, SLOT_BOUND_GROWING(BATCH));
}

static void test_signed(void **state)
{
	/* The last one reaches the bound: each of the two claims publishes a count of before three adds. */
	static const int64_t adds[][MAX_OPS] = {
		{ 3, -3, -3, 3 }, { 3, -2, -3, 3 },	    { -3, 3, 3, -3 },
		{ 3, -3, 3, -3 }, { -3, 3, 3, -3, -3, -3 },
	};
	static const int64_t twice[] = { 1, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(adds) / sizeof(adds[0]); i++) {
		add_task(owner, adds[i], MAX_OPS);
		add_task(claimer, twice, 2);
		explore_slot(false, SLOT_BOUND_SIGNED(BATCH));
	}
	add_task(owner, adds[0], 2);
	add_task(claimer, twice, 1);
	add_task(claimer, twice, 1);
	explore_slot(false, SLOT_BOUND_SIGNED(BATCH));
}

static void test_two_writers(void **state)
{
	static const int64_t adds[] = { 3, 2 };
	static const int64_t signs[] = { -3, 2 };
	static const int64_t once[] = { 1 };

	(void)state;
	add_task(writer, adds, 2);
	add_task(writer, adds, 1);
	explore_slot(true, SLOT_BOUND_GROWING(BATCH));
	add_task(writer, adds, 1);
	add_task(writer, signs, 1);
	add_task(claimer, once, 1);
	explore_slot(false, SLOT_BOUND_SIGNED(BATCH));
}

/* ---- marks ---- */

static struct marks {
	struct bank bank;
	int64_t added, total;
} marks;

/* Two ids that share a word of marks. */
static const uint32_t ids[2] = { 3, 5 };

static void marking_owner(struct task *task)
{
	for (size_t i = 0; i < MAX_OPS && task->ops[i] != 0; i++) {
		uint32_t id = ids[task->ops[i] - 1];

		(void)slot_add_owner(bank_slot(&marks.bank, id), 1, 1000);
		bank_mark(&marks.bank, id);
		marks.added++;
	}
}

static void visit(void *ctx, uint32_t id, struct slot *slot)
{
	int64_t growth;

	(void)ctx;
	(void)id;
	if (slot_claim(slot, &growth)) {
		marks.total += growth;
	}
}

static void flush(void)
{
	int64_t before = marks.added;

	bank_take(&marks.bank);
	fence_heavy();
	(void)bank_visit(&marks.bank, visit, NULL);
	assert_true(marks.total >= before);
}

static void flusher(struct task *task)
{
	for (size_t i = 0; i < MAX_OPS && task->ops[i] != 0; i++) {
		flush();
	}
}

/* A mark of before, so that owners find some set and some clear. */
static void marks_before(void)
{
	flush();
	marks.added = 0;
	marks.total = 0;
	(void)slot_add_owner(bank_slot(&marks.bank, ids[0]), 1, 1000);
	bank_mark(&marks.bank, ids[0]);
	marks.added++;
}

static void marks_after_step(void)
{
}

static void marks_after(void)
{
	flush();
	assert_int_equal(marks.total, marks.added);
}

static void test_marks(void **state)
{
	static const int64_t adds[][2] = { { 1, 1 }, { 1, 2 }, { 2 } };
	static const int64_t once[] = { 1 };

	(void)state;
	assert_int_equal(bank_init(&marks.bank, 100, false), 0);
	assert_non_null(bank_touch(&marks.bank, 0));
	for (size_t i = 0; i < sizeof(adds) / sizeof(adds[0]); i++) {
		add_task(marking_owner, adds[i], 2);
		add_task(flusher, once, 1);
		explore(marks_before, marks_after_step, marks_after);
	}
	bank_deinit(&marks.bank);
}

static void test_marks_two_flushes(void **state)
{
	static const int64_t adds[] = { 2 };
	static const int64_t twice[] = { 1, 1 };

	(void)state;
	assert_int_equal(bank_init(&marks.bank, 100, false), 0);
	assert_non_null(bank_touch(&marks.bank, 0));
	add_task(marking_owner, adds, 1);
	add_task(flusher, twice, 2);
	explore(marks_before, marks_after_step, marks_after);
	bank_deinit(&marks.bank);
}

/* ---- cuts ---- */

enum {
	MARK_0 = 1,
	MARK_1,
	NOTE_0, /* what is folded at once: no mark but the owner's own */
	NOTE_1,
	CUT,
};

static struct slot *slot_of(size_t i)
{
	return bank_slot(&marks.bank, ids[i]);
}

static struct {
	uint64_t told[2];
	size_t n_told;
} cuts;

static void tell(void *ctx, uint32_t id)
{
	(void)ctx;
	for (size_t i = 0; i < 2; i++) {
		if (ids[i] == id) {
			cuts.told[i] = slot_count(slot_of(i));
			cuts.n_told++;
		}
	}
}

/* All that the owner has brought is told, at every cut. */
static void cut(void)
{
	bank_cut(&marks.bank, tell, NULL);
	assert_int_equal(cuts.told[0], slot_count(slot_of(0)));
	assert_int_equal(cuts.told[1], slot_count(slot_of(1)));
}

static void cutting_owner(struct task *task)
{
	for (size_t i = 0; i < MAX_OPS && task->ops[i] != 0; i++) {
		switch (task->ops[i]) {
		case CUT:
			cut();
			break;
		case NOTE_0:
		case NOTE_1:
			slot_put(slot_of((size_t)task->ops[i] - NOTE_0), 1);
			bank_note(&marks.bank, ids[task->ops[i] - NOTE_0]);
			break;
		default:
			slot_put(slot_of((size_t)task->ops[i] - MARK_0), 1);
			bank_mark(&marks.bank, ids[task->ops[i] - MARK_0]);
			break;
		}
	}
}

static void taker(struct task *task)
{
	for (size_t i = 0; i < MAX_OPS && task->ops[i] != 0; i++) {
		bank_take(&marks.bank);
	}
}

/* One id is dirty, and was told of. */
static void cuts_before(void)
{
	slot_put(slot_of(0), 1);
	bank_mark(&marks.bank, ids[0]);
	cut();
}

/* Nothing is told for ever. */
static void cuts_after(void)
{
	cut();
	bank_take(&marks.bank);
	cut();
	cuts.n_told = 0;
	cut();
	assert_int_equal(cuts.n_told, 0);
}

static void test_cuts(void **state)
{
	static const int64_t owners[][MAX_OPS] = {
		{ MARK_0, CUT },      { MARK_1, CUT },	    { CUT, MARK_0, CUT },
		{ CUT, MARK_1, CUT }, { CUT, NOTE_0, CUT }, { NOTE_1, CUT, MARK_0, CUT },
	};
	static const int64_t takes[] = { 1, 1 };

	(void)state;
	assert_int_equal(bank_init(&marks.bank, 64, true), 0);
	assert_non_null(bank_touch(&marks.bank, 0));
	/* One word will do. */
	atomic_store_explicit(&marks.bank.n_ids, 64, memory_order_relaxed);
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		for (size_t n = 1; n <= (owners[i][3] == 0 ? 2 : 1); n++) {
			add_task(cutting_owner, owners[i], MAX_OPS);
			add_task(taker, takes, n);
			explore(cuts_before, marks_after_step, cuts_after);
		}
	}
	bank_deinit(&marks.bank);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growing),		  cmocka_unit_test(test_signed),
		cmocka_unit_test(test_two_writers),	  cmocka_unit_test(test_marks),
		cmocka_unit_test(test_marks_two_flushes), cmocka_unit_test(test_cuts),
	};

#ifdef SLOT_SANITIZED
	/* The sanitizers do not follow changes of stack by swapcontext; there is nothing for them to find in one thread either. */
	print_message("not run under this sanitizer\n");
	return 0;
#endif
	return cmocka_run_group_tests_name("count/interleavings", tests, NULL, NULL);
}
