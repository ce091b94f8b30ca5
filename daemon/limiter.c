#include "daemon/limiter.h"

static bool limiter_is_over(const struct limiter *limiter, int64_t now_ns, int64_t interval_ns)
{
	return limiter->began_ns == 0 || now_ns - limiter->began_ns >= interval_ns;
}

bool limiter_pass(struct limiter *limiter, int64_t now_ns, uint32_t burst, int64_t interval_ns)
{
	if (limiter_is_over(limiter, now_ns, interval_ns)) {
		limiter->began_ns = now_ns;
		limiter->passed = 0;
	}
	if (limiter->passed < burst) {
		limiter->passed++;
		return true;
	}
	limiter->suppressed++;
	return false;
}

uint64_t limiter_collect(struct limiter *limiter, int64_t now_ns, int64_t interval_ns)
{
	uint64_t suppressed = 0;

	if (limiter->suppressed > 0 && limiter_is_over(limiter, now_ns, interval_ns)) {
		suppressed = limiter->suppressed;
		limiter->suppressed = 0;
	}
	return suppressed;
}
