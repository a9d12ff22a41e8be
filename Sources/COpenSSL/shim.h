#ifndef STRATUS_COPENSSL_SHIM_H
#define STRATUS_COPENSSL_SHIM_H
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <openssl/pem.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>

/// Function-like macros that Swift cannot import.
static inline long stratus_ssl_ctx_set_min_version(SSL_CTX *c, int v) { return SSL_CTX_set_min_proto_version(c, v); }
static inline long stratus_ssl_ctx_set_max_version(SSL_CTX *c, int v) { return SSL_CTX_set_max_proto_version(c, v); }
static inline long stratus_ssl_ctx_set_mode(SSL_CTX *c, long m) { return SSL_CTX_set_mode(c, m); }
static inline long stratus_ssl_set_host_name(SSL *s, const char *n) { return SSL_set_tlsext_host_name(s, (char *)n); }
static inline long stratus_ssl_ctx_set_read_ahead(SSL_CTX *c, int on) { return SSL_CTX_set_read_ahead(c, on); }
static inline long stratus_ssl_ctx_disable_session_cache(SSL_CTX *c) { return SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF); }
static inline long stratus_ssl_ctx_set_client_session_cache(SSL_CTX *c) {
    return SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}
static inline long stratus_ssl_ctx_add_chain_certificate(SSL_CTX *c, X509 *x) { return SSL_CTX_add0_chain_cert(c, x); }

/// Constants behind casts: what a non-blocking server asks of OpenSSL.
static inline void stratus_ssl_ctx_harden(SSL_CTX *c) {
    SSL_CTX_set_options(c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
}

static inline int stratus_err_reason(unsigned long code) { return ERR_GET_REASON(code); }

/// A P-256 key; the generator itself is variadic.
static inline EVP_PKEY *stratus_evp_generate_p256(void) { return EVP_EC_gen("P-256"); }

/// The bytes of a memory BIO, valid while it lives.
static inline long stratus_bio_bytes(BIO *b, char **start) { return BIO_get_mem_data(b, start); }

/// Adds an X.509 version 3 extension in openssl.cnf's notation. 1 on success.
static inline int stratus_x509_add_extension(X509 *certificate, X509 *issuer, int nid, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    if (extension == NULL) return 0;
    int added = X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

/// A name as RFC 2253 writes it, into a BIO. Negative on failure.
static inline int stratus_x509_name_print(BIO *b, const X509_NAME *name) {
    return X509_NAME_print_ex(b, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
}

/// A P-256 key of its point, and of its number where `scalar` is not NULL. NULL where they make none.
static inline EVP_PKEY *stratus_evp_p256_from(
    const unsigned char *scalar, size_t scalar_size, const unsigned char *point, size_t point_size) {
    EVP_PKEY *key = NULL;
    OSSL_PARAM *parameters = NULL;
    BIGNUM *number = scalar == NULL ? NULL : BN_bin2bn(scalar, (int)scalar_size, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (builder != NULL && context != NULL
        && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0)
        && OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, point_size)
        && (scalar == NULL || (number != NULL && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number)))
        && (parameters = OSSL_PARAM_BLD_to_param(builder)) != NULL && EVP_PKEY_fromdata_init(context) == 1
        && EVP_PKEY_fromdata(context, &key, scalar == NULL ? EVP_PKEY_PUBLIC_KEY : EVP_PKEY_KEYPAIR, parameters) != 1) {
        key = NULL;
    }
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    EVP_PKEY_CTX_free(context);
    BN_clear_free(number);
    return key;
}

static inline EVP_PKEY *stratus_evp_p256_public(const unsigned char *point, size_t point_size) {
    return stratus_evp_p256_from(NULL, 0, point, point_size);
}
#endif
