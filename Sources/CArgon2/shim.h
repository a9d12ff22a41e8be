#ifndef STRATUS_CARGON2_SHIM_H
#define STRATUS_CARGON2_SHIM_H
#include <argon2.h>
#endif
