#include "lib/rcu/grace.h"

#ifdef GRACE_TSAN
char grace_tag;
#endif

void grace_register(void)
{
	urcu_memb_register_thread();
}

void grace_unregister(void)
{
	urcu_memb_unregister_thread();
}

void grace_wait(void)
{
	urcu_memb_synchronize_rcu();
#ifdef GRACE_TSAN
	/* Pairs with the release in grace_leave. It takes in more sections than had to be waited for, so that a free too early could
	 * hide behind an unrelated section that ended in time; one that no grace_wait precedes is still reported. */
	__tsan_acquire(&grace_tag);
#endif
}
