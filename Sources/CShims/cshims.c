#define _GNU_SOURCE
#include "cshims.h"
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>

int stratus_accept4(int listener, struct sockaddr_storage *peer, socklen_t *length) {
    int descriptor = accept4(listener, (struct sockaddr *)peer, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

ssize_t stratus_getrandom(void *bytes, size_t count) {
    ssize_t drawn = getrandom(bytes, count, 0);
    return drawn < 0 ? -errno : drawn;
}

int stratus_refuse_core_dumps(void) {
    // The limit is for the kernel's own files, the flag for whoever is handed a dump through a pipe.
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return -errno;
    return 0;
}

void stratus_give_memory_back(int mapped, int spare) {
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, mapped);
    mallopt(M_TRIM_THRESHOLD, spare);
#endif
}

void stratus_name_this_thread(const char *name) {
    char kept[16] = {0};
    strncpy(kept, name, sizeof kept - 1);
    pthread_setname_np(pthread_self(), kept);
}

static _Thread_local void *thread_mark;

void *stratus_thread_mark(void) { return thread_mark; }

void stratus_set_thread_mark(void *mark) { thread_mark = mark; }

static uint32_t crc32c_portable(uint32_t crc, const unsigned char *p, size_t n) {
    while (n--) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
    }
    return crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const unsigned char *p, size_t n) {
    uint64_t wide = crc;
    while (n >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        wide = _mm_crc32_u64(wide, word);
        p += 8;
        n -= 8;
    }
    crc = (uint32_t)wide;
    while (n--) crc = _mm_crc32_u8(crc, *p++);
    return crc;
}
uint32_t stratus_crc32c(uint32_t crc, const void *bytes, size_t count) {
    return __builtin_cpu_supports("sse4.2") ? ~crc32c_sse42(~crc, bytes, count) : ~crc32c_portable(~crc, bytes, count);
}
#else
uint32_t stratus_crc32c(uint32_t crc, const void *bytes, size_t count) {
    return ~crc32c_portable(~crc, bytes, count);
}
#endif
