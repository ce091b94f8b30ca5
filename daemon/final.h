#pragma once
/* final: the last line of a daemon's log. */

struct daemon;

/* What was counted, now that nobody counts any more: exact. */
void final_tell(struct daemon *daemon);
