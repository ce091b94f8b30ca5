#include "daemon/store/cut.h"

#include <stdlib.h>

struct cut *cut_free(struct cut *cut)
{
	if (cut != NULL) {
		arena_deinit(&cut->arena);
		free(cut->growth);
		free(cut->sessions);
		free(cut->held);
		free(cut);
	}
	return NULL;
}
