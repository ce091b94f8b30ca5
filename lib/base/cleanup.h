#pragma once
/*
 * cleanup: local owners give back what they hold when their scope ends. These four macros and no more.
 *
 *	_cleanup_free_ char *text = NULL;
 *	_cleanup_close_ int fd = -1;
 *	_cleanup_(thing_freep) struct thing *thing = NULL;
 *
 *	*ret_thing = thing;	// success ends with the hand-over
 *	thing = NULL;
 *	return 0;
 *
 * A variable must be initialised where it is declared.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((__cleanup__(function)))
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)

/* Defines x_freep(), for _cleanup_(x_freep), from a destructor x_free() of a pointer type. */
#define DEFINE_CLEANUP(type, function)               \
	static inline void function##p(type *object) \
	{                                            \
		if (*object != NULL) {               \
			(void)function(*object);     \
		}                                    \
	}                                            \
	_Static_assert(1, "a semicolon may follow")

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

/* Leaves errno as it is: a failure is mostly on its way out when this runs. */
static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		(void)close(*fd);
		errno = saved;
	}
}
