#ifndef STRATUS_COPENSSL_SHIM_H
#define STRATUS_COPENSSL_SHIM_H
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <openssl/pem.h>

/// Function-like macros that Swift cannot import.
static inline long stratus_ssl_ctx_set_min_version(SSL_CTX *c, int v) { return SSL_CTX_set_min_proto_version(c, v); }
static inline long stratus_ssl_ctx_set_max_version(SSL_CTX *c, int v) { return SSL_CTX_set_max_proto_version(c, v); }
static inline long stratus_ssl_ctx_set_mode(SSL_CTX *c, long m) { return SSL_CTX_set_mode(c, m); }
static inline long stratus_ssl_set_host_name(SSL *s, const char *n) { return SSL_set_tlsext_host_name(s, (char *)n); }
#endif
