#pragma once
/*
 * charge: what the public structs about quotas are made of.
 */
#include "clients/c/include/ration.h"
#include "proto/message.h"

void charge_window(const struct rule_window *window, struct ration_window *ret_window);

/* One block, to be freed by free(). NULL: no memory. */
struct ration_charge_result *charge_result(const struct charged *charged);

struct operation;

/* Free those of a list that are charges or uncharges; nobody waits for them. */
void charges_forget(struct operation *operations);
