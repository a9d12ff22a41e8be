#ifndef STRATUS_CNGHTTP2_SHIM_H
#define STRATUS_CNGHTTP2_SHIM_H
#include <sys/types.h>
#include <nghttp2/nghttp2.h>

/// Debian's 1.52 has both limits; upstream's 1.52 lacks them, and a build against it must not succeed.
static inline void stratus_nghttp2_limit_floods(nghttp2_option *o, size_t continuations, uint64_t burst, uint64_t rate) {
    nghttp2_option_set_max_continuations(o, continuations);
    nghttp2_option_set_stream_reset_rate_limit(o, burst, rate);
}
#endif
