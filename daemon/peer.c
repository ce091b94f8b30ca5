#include "daemon/peer.h"

#include "lib/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

/* Its supplementary groups; NULL: it has none, or they can't be told. */
static gid_t *get_groups(int fd, size_t *ret_n)
{
	socklen_t len = 64 * sizeof(gid_t);

	for (unsigned i = 0; i < 2; i++) {
		_cleanup_free_ gid_t *groups = malloc(len);

		if (groups == NULL) {
			return NULL;
		}
		if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0) {
			gid_t *got = groups;

			*ret_n = len / sizeof(gid_t);
			groups = NULL;
			return got;
		}
		/* More than we had room for: now `len` says how much it takes. They can't become more. */
		if (errno != ERANGE) {
			return NULL;
		}
	}
	return NULL;
}

static bool is_member(int fd, gid_t primary, gid_t group)
{
	_cleanup_free_ gid_t *groups = NULL;
	size_t n = 0;

	if (primary == group) {
		return true;
	}
	groups = get_groups(fd, &n);
	for (size_t i = 0; groups != NULL && i < n; i++) {
		if (groups[i] == group) {
			return true;
		}
	}
	return false;
}

bool peer_is_admin(int fd, int64_t admin_group)
{
	struct ucred who = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	socklen_t len = sizeof(int);
	int domain = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != AF_UNIX) {
		return false;
	}
	len = sizeof(who);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 || who.uid == (uid_t)-1) {
		return false;
	}
	return who.uid == 0 || who.uid == geteuid() ||
	       (admin_group != 0 && is_member(fd, who.gid, (gid_t)(admin_group - 1)));
}
