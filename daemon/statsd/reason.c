#include "daemon/statsd/reason.h"

const char *statsd_reason_name(enum statsd_reason reason)
{
	static const char *const names[STATSD_N_REASONS] = { [STATSD_OK] = "ok",
#define STATSD_REASON_NAME(name, help) [STATSD_##name] = #name,
							     STATSD_REASONS(STATSD_REASON_NAME)
#undef STATSD_REASON_NAME
	};

	return names[reason];
}
