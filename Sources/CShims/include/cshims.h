#ifndef STRATUS_CSHIMS_H
#define STRATUS_CSHIMS_H
// What the Glibc module does not show to Swift: epoll, eventfd, accept4, CPU intrinsics; what Swift cannot declare. No
// logic.
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/// accept4 takes a transparent union under _GNU_SOURCE. Returns the descriptor, or -errno.
int stratus_accept4(int listener, struct sockaddr_storage *peer, socklen_t *length);

/// getrandom is not in the Glibc module. Returns the bytes drawn, or -errno.
ssize_t stratus_getrandom(void *bytes, size_t count);

/// prctl takes variable arguments. The process leaves no core dump, and others of its user cannot read its memory.
/// Returns 0, or -errno.
int stratus_refuse_core_dumps(void);

/// mallopt is not in the Glibc module. Buffers of `mapped` bytes are mappings of their own, and no heap keeps more than
/// `spare` bytes free at its end.
void stratus_give_memory_back(int mapped, int spare);

/// Shows in ps, gdb and perf; at most 15 bytes are kept.
void stratus_name_this_thread(const char *name);

/// Lowers the calling thread's share of the processor, by a nice value. Returns a negative errno on failure.
int stratus_lower_this_thread(int by);

/// A pointer of this thread's own; null until it is set.
void *stratus_thread_mark(void);
void stratus_set_thread_mark(void *mark);

/// CRC-32C of `count` bytes, continuing from `crc` (start with 0). Uses SSE 4.2 where the CPU has it.
uint32_t stratus_crc32c(uint32_t crc, const void *bytes, size_t count);
#endif
