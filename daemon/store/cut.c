#include "daemon/store/cut.h"

#include <stdlib.h>

struct cut *cut_free(struct cut *cut)
{
	if (cut != NULL) {
		arena_deinit(&cut->arena);
		free(cut);
	}
	return NULL;
}
