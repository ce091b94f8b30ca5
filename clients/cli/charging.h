#pragma once
/*
 * charging: what is to be charged, the charge, and what was answered.
 */
#include "clients/cli/args.h"

struct charging {
	struct cli *cli;
	const char *command;		  /* for messages */
	struct ration_charge_item *items; /* with paths of their own */
	size_t n;
};

void charging_init(struct charging *charging, struct cli *cli, const char *command);
void charging_deinit(struct charging *charging);

/* N, in the range that can be charged. False: reported. */
bool charging_amount(struct cli *cli, const char *command, const char *text, int64_t *ret_n);

/* Add n (1 or more) at the path that `len` bytes are. False: no memory, which was noted. */
bool charging_add(struct charging *charging, const char *path, size_t len, int64_t n);

/* PATH [N] PATH [N] ...: a word after PATH that begins with a digit or a sign is its N. False: reported. */
bool charging_words(struct charging *charging, char *const *words, size_t n);

/* PATH[:N]: what follows the last colon is N. False: reported. */
bool charging_option(struct charging *charging, const char *text);

/* --dry-run and --wait. */
struct ration_charge_options charging_options(const struct args *args);

/*
 * Charge all of it in one; what ration_charge returned. Refusals, errors, and what else limits have to say are reported, and with --json
 * "granted", "items", "bindings" and "omitted" are put.
 */
int charging_charge(const struct charging *charging, struct ration *client,
		    const struct ration_charge_options *options);

/* Report what libration returned for `subject` if it is neither 0 nor a refusal. */
void charging_answer(struct cli *cli, int r, const char *subject);
