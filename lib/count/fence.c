#include "lib/count/fence.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic(int) fence_mode = FENCE_FULL;

#ifdef FENCE_TSAN
_Atomic(int) fence_dummy;
#endif

static int membarrier(int command)
{
	return syscall(SYS_membarrier, command, /* flags= */ 0, /* cpu= */ 0) < 0 ? -errno : 0;
}

void fence_setup(void)
{
	if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0) {
		fence_force(FENCE_ASYMMETRIC);
	}
}

void fence_force(enum fence_mode mode)
{
	/* Relaxed: the caller sees to it that no other thread is on either side. */
	atomic_store_explicit(&fence_mode, (int)mode, memory_order_relaxed);
}

/*
 * The call can fail in a process that registered if something took the registration away (-EPERM: register again) or forbade the call
 * (a filter put up later). In the latter case the light side goes over to full fences, and what it stored in this very moment
 * may be seen by the next heavy fence only.
 */
static void fence_processes(void)
{
	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
		return;
	}
	if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
	    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
		return;
	}
	fence_force(FENCE_FULL);
}

void fence_heavy(void)
{
	switch (atomic_load_explicit(&fence_mode, memory_order_relaxed)) {
	case FENCE_ASYMMETRIC:
		fence_processes();
		break;
	case FENCE_BROKEN:
		return;
	default:
		break;
	}
	fence_full();
}
