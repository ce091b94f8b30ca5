#pragma once
/* self: what the daemon says of itself, for scrapers: the families rationd_*. */
#include "lib/expose/sheet.h"

struct daemon;

/* All of them. Any thread. */
void self_put(struct sheet *sheet, struct daemon *daemon);
