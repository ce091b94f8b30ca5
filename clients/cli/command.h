#pragma once
/*
 * command: the one table of commands. It drives dispatch, --help, the man page and bash completion.
 */
#include "clients/cli/args.h"

#define OPERANDS_MANY UINT32_MAX

struct command {
	const char *name; /* one or two words: "get", "metric show" */
	const char *args; /* operands, for usage lines */
	const char *summary;
	uint64_t options; /* beside OPTIONS_GLOBAL */
	bool before;	  /* options stand before all operands, which may look like options */
	uint32_t min_operands;
	uint32_t max_operands;
	/* Paragraphs apart by an empty line; lines that begin with a blank are examples, kept as they are. */
	const char *details;
	void (*run)(struct cli *cli, const struct args *args);
};

/* In the order of help; a NULL name ends it. */
extern const struct command commands[];

/* The command that words[0..n) begin with; its length in words in *ret_words. NULL: none. */
const struct command *command_find(char *const *words, size_t n, size_t *ret_words);

/* Report that words[0..n), n > 0, begin with no command: what is near, or what the first word wants after it. */
void command_unknown(struct cli *cli, char *const *words, size_t n);

/* Each in a file of its own: cmd_NAME.c. They report what goes wrong to `cli`. */
void cmd_add(struct cli *cli, const struct args *args);
void cmd_get(struct cli *cli, const struct args *args);
void cmd_tree(struct cli *cli, const struct args *args);
void cmd_flush(struct cli *cli, const struct args *args);
void cmd_status(struct cli *cli, const struct args *args);
void cmd_reload(struct cli *cli, const struct args *args);
void cmd_metric_show(struct cli *cli, const struct args *args);
void cmd_metric_set(struct cli *cli, const struct args *args);
void cmd_quota_set(struct cli *cli, const struct args *args);
void cmd_quota_show(struct cli *cli, const struct args *args);
void cmd_quota_explain(struct cli *cli, const struct args *args);
void cmd_quota_remove(struct cli *cli, const struct args *args);
void cmd_charge(struct cli *cli, const struct args *args);
void cmd_uncharge(struct cli *cli, const struct args *args);
void cmd_run(struct cli *cli, const struct args *args);
void cmd_export(struct cli *cli, const struct args *args);
void cmd_import(struct cli *cli, const struct args *args);
void cmd_reset(struct cli *cli, const struct args *args);
void cmd_version(struct cli *cli, const struct args *args);
void cmd_help(struct cli *cli, const struct args *args);
