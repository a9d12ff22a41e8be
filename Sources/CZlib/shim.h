#ifndef STRATUS_CZLIB_SHIM_H
#define STRATUS_CZLIB_SHIM_H
#include <zlib.h>

/// deflateInit2 and inflateInit2 are macros that pass the header's version and struct size along.
static inline int stratus_deflate_init_gzip(z_stream *stream, int level) {
    return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}
static inline int stratus_inflate_init_gzip(z_stream *stream) { return inflateInit2(stream, 15 + 16); }
#endif
