#ifndef STRATUS_CZSTD_SHIM_H
#define STRATUS_CZSTD_SHIM_H
#include <zstd.h>
#endif
