#define _GNU_SOURCE
#include "cshims.h"
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

int stratus_lower_this_thread(int by) {
    // On Linux each thread has a value of its own.
    id_t thread = (id_t)syscall(SYS_gettid);
    errno = 0;
    int value = getpriority(PRIO_PROCESS, thread);
    if (value == -1 && errno != 0) return -errno;
    return setpriority(PRIO_PROCESS, thread, value + by) == 0 ? 0 : -errno;
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
#include <wmmintrin.h>
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

// One CRC instruction waits three cycles for the one before it, and three of different strips do not wait for each other.
// So 3 * STRIP bytes are read as three strips, and the strips joined: the first is followed by 2 * STRIP bytes, the second
// by STRIP. To be followed by n bytes is to be multiplied by x^(8n) modulo the polynomial; the product takes the place of
// 8 bytes at the end of the third strip, which multiplies it by x^33: the constants are x^(8n - 33).
// A KiB, as many entries have, is three strips and 16 bytes.
#define STRIP 336
static const uint32_t past_one_strip = 0xA60CE07Bu, past_two_strips = 0xCEC3662Eu;

__attribute__((target("sse4.2,pclmul"))) static uint64_t crc32c_product(uint64_t crc, uint32_t power) {
    return (uint64_t)_mm_cvtsi128_si64(
        _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc), _mm_cvtsi32_si128((int)power), 0));
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc32c_strips(uint32_t crc, const unsigned char *p, size_t n) {
    while (n >= 3 * STRIP) {
        uint64_t first = crc, second = 0, third = 0, a, b, c;
        for (size_t at = 0;; at += 8) {
            memcpy(&a, p + at, 8);
            memcpy(&b, p + STRIP + at, 8);
            memcpy(&c, p + 2 * STRIP + at, 8);
            first = _mm_crc32_u64(first, a);
            second = _mm_crc32_u64(second, b);
            if (at == STRIP - 8) break;
            third = _mm_crc32_u64(third, c);
        }
        c ^= crc32c_product(first, past_two_strips) ^ crc32c_product(second, past_one_strip);
        crc = (uint32_t)_mm_crc32_u64(third, c);
        p += 3 * STRIP;
        n -= 3 * STRIP;
    }
    return crc32c_sse42(crc, p, n);
}

uint32_t stratus_crc32c(uint32_t crc, const void *bytes, size_t count) {
    if (!__builtin_cpu_supports("sse4.2")) return ~crc32c_portable(~crc, bytes, count);
    if (count < 3 * STRIP || !__builtin_cpu_supports("pclmul")) return ~crc32c_sse42(~crc, bytes, count);
    return ~crc32c_strips(~crc, bytes, count);
}
#else
uint32_t stratus_crc32c(uint32_t crc, const void *bytes, size_t count) {
    return ~crc32c_portable(~crc, bytes, count);
}
#endif
