#pragma once
/*
 * usage: which limits' kept usage (lib/quota/kept.h) is to be told of, see keep.h.
 *
 * What is kept stands in the limit. One thread writes it, the one that calls engine_usage_*; whoever changes limits does so behind the closed
 * gate, or before anybody can find them, and that thread looks at limits as a charge does: in a read section, past the open gate.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum usage_state {
	USAGE_TOLD,
	USAGE_BEGUN, /* a limit that a rule gave to a counter that was there: what was told of an earlier one is wrong */
	USAGE_CHANGED, /* and it is among `changed`, unless `all` */
};

/*
 * A limit that a rule gave to a counter that was there is young: the cuts that come next have growth from before it. The cuts of one checkpoint may have been
 * taken before it began, those of the next have such growth for the last time.
 */
#define USAGE_TRIMS 2u

struct usage {
	uint64_t *changed; /* ids and planes; a limit may have gone since */
	size_t n, room;
	bool all;	     /* they did not fit there */
	_Atomic(bool) begun; /* some limit is USAGE_BEGUN */
	_Atomic(bool) young; /* some limit is young */
};

void usage_deinit(struct usage *usage);
