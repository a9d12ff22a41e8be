#ifndef SPAWN_SHIMS_H
#define SPAWN_SHIMS_H
// What the Glibc module does not show to Swift. No logic. Includes nothing: a system header included here
// would make its types this module's.

/// pipe2 with O_CLOEXEC. Returns 0, or errno.
int spawn_pipe(int ends[2]);

/// posix_spawn_file_actions_addclosefrom_np, glibc 2.34 and later. Takes a posix_spawn_file_actions_t.
int spawn_close_from(void *actions, int first);
#endif
