#pragma once
/*
 * tarantool: calls of stored procedures of a Tarantool, over its binary protocol, as far as the benchmark of charges needs it:
 * procedures that take a path and a number, and return a number.
 */
#include "tests/bench/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARANTOOL_MAX_CALL 128u

/* In Lua: limit(path, max), charge(path, n), which returns 1 or -1, usage(path). */
extern const char tarantool_procedures[];

/* Take what it says at first. */
void tarantool_greet(struct link *link);
/* Write a request to `out`, which has TARANTOOL_MAX_CALL bytes; returns its length. */
size_t tarantool_call(uint8_t *out, const char *procedure, const char *path, int64_t n);
/* Does an answer end with these bytes, or before? */
bool tarantool_is_whole(const uint8_t *bytes, size_t len);
/* Receive an answer: what the procedure returned. An error ends the benchmark. */
int64_t tarantool_number(struct link *link);
