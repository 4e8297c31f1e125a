#include "net/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tls_context {
    SSL_CTX *ssl;
    atomic_uint refs;
};

/* A tls_connection is an SSL, hidden from other files. */
static SSL *ssl_of(struct tls_connection *connection)
{
    return (SSL *)connection;
}

/* The first error is the cause; later ones only name the functions that passed it on. */
static void explain_tls_error(char error[TLS_ERROR_TEXT_MAX], const char *what, const char *file)
{
    unsigned long cause = ERR_peek_error();
    const char *reason =
        ERR_SYSTEM_ERROR(cause) ? strerror(ERR_GET_REASON(cause)) : ERR_reason_error_string(cause);
    snprintf(error, TLS_ERROR_TEXT_MAX, "%s %s: %s", what, file, reason ? reason : "not usable");
    ERR_clear_error();
}

/* Without this OpenSSL would prompt at the terminal, and wait. */
static int refuse_key_password(char *out, int max, int writing, void *arg)
{
    (void)out;
    (void)max;
    (void)writing;
    (void)arg;
    return -1;
}

/* TLS 1.2 with forward secrecy and authenticated encryption only; TLS 1.3 has nothing else. */
static const char TLS_1_2_CIPHERS[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

static SSL_CTX *make_ssl_context(const SSL_METHOD *method)
{
    ERR_clear_error(); /* an older error must not explain a new failure */
    SSL_CTX *ssl = SSL_CTX_new(method);
    if (!ssl)
        return NULL;
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(ssl, TLS_1_2_CIPHERS);
    SSL_CTX_set_options(ssl, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_default_passwd_cb(ssl, refuse_key_password);
    SSL_CTX_set_num_tickets(ssl, 1);
    /* clients resume by ticket; a cache on our side would only grow */
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    return ssl;
}

/* Takes the SSL context; frees it when out of memory. */
static struct tls_context *wrap_ssl_context(SSL_CTX *ssl)
{
    struct tls_context *context = calloc(1, sizeof(*context));
    if (!context) {
        SSL_CTX_free(ssl);
        return NULL;
    }
    context->ssl = ssl;
    atomic_init(&context->refs, 1);
    return context;
}

/* Loading a key compares it with the certificate. */
static void explain_tls_key_error(char *error, const char *certificate_file, const char *key_file)
{
    int reason = ERR_GET_REASON(ERR_peek_last_error());
    bool is_other = ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_X509 &&
                    (reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH);
    explain_tls_error(error, "private key", key_file);
    if (is_other)
        snprintf(
            error, TLS_ERROR_TEXT_MAX,
            "private key %s does not belong to certificate %s: name the key that the certificate was "
            "issued for",
            key_file, certificate_file);
}

/* Chooses HTTP/1.1 from the protocols that the client offers; a client that offers only others is served all the
 * same, since some offer `h2` alone and speak HTTP/1.1. */
static int choose_tls_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                               const unsigned char *offered, unsigned offered_len, void *arg)
{
    static const unsigned char HTTP_1_1[] = "\x08http/1.1";
    (void)ssl;
    (void)arg;
    int found = SSL_select_next_proto((unsigned char **)out, out_len, HTTP_1_1,
                                      sizeof(HTTP_1_1) - 1, offered, offered_len);
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static bool load_tls_certificate(SSL_CTX *ssl, const char *certificate_file, const char *key_file,
                                 char error[TLS_ERROR_TEXT_MAX])
{
    if (SSL_CTX_use_certificate_chain_file(ssl, certificate_file) != 1)
        explain_tls_error(error, "certificate", certificate_file);
    else if (SSL_CTX_use_PrivateKey_file(ssl, key_file, SSL_FILETYPE_PEM) != 1)
        explain_tls_key_error(error, certificate_file, key_file);
    else
        return true;
    return false;
}

struct tls_context *tls_context_load(const char *certificate_file, const char *key_file,
                                     char error[TLS_ERROR_TEXT_MAX])
{
    SSL_CTX *ssl = make_ssl_context(TLS_server_method());
    snprintf(error, TLS_ERROR_TEXT_MAX, "out of memory");
    if (!ssl)
        return NULL;
    if (load_tls_certificate(ssl, certificate_file, key_file, error)) {
        SSL_CTX_set_alpn_select_cb(ssl, choose_tls_protocol, NULL);
        return wrap_ssl_context(ssl);
    }
    SSL_CTX_free(ssl);
    return NULL;
}

struct tls_context *tls_context_load_client(const char *ca_file, char error[TLS_ERROR_TEXT_MAX])
{
    SSL_CTX *ssl = make_ssl_context(TLS_client_method());
    snprintf(error, TLS_ERROR_TEXT_MAX, "out of memory");
    if (!ssl)
        return NULL;
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    int loaded = ca_file ? SSL_CTX_load_verify_locations(ssl, ca_file, NULL)
                         : SSL_CTX_set_default_verify_paths(ssl);
    if (loaded != 1) {
        explain_tls_error(error, "certificates to trust:", ca_file ? ca_file : "the system's");
        SSL_CTX_free(ssl);
        return NULL;
    }
    return wrap_ssl_context(ssl);
}

bool tls_context_show_certificate(struct tls_context *context, const char *certificate_file,
                                  const char *key_file, char error[TLS_ERROR_TEXT_MAX])
{
    return load_tls_certificate(context->ssl, certificate_file, key_file, error);
}

struct tls_context *tls_context_share(struct tls_context *context)
{
    atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
    return context;
}

void tls_context_drop(struct tls_context **context)
{
    struct tls_context *dropped = *context;
    *context = NULL;
    if (!dropped || atomic_fetch_sub_explicit(&dropped->refs, 1, memory_order_acq_rel) != 1)
        return;
    SSL_CTX_free(dropped->ssl);
    free(dropped);
}

static SSL *make_ssl_connection(struct tls_context *context, int fd)
{
    SSL *ssl = SSL_new(context->ssl);
    if (ssl && SSL_set_fd(ssl, fd) == 1)
        return ssl;
    SSL_free(ssl);
    ERR_clear_error();
    return NULL;
}

struct tls_connection *tls_connection_make(struct tls_context *context, int fd)
{
    SSL *ssl = make_ssl_connection(context, fd);
    if (ssl)
        SSL_set_accept_state(ssl);
    return (struct tls_connection *)ssl;
}

struct tls_connection *tls_connection_make_client(struct tls_context *context, int fd,
                                                  const char *host)
{
    SSL *ssl = make_ssl_connection(context, fd);
    /* a certificate names hosts or addresses; only a host name is sent to the server (RFC 6066) */
    if (ssl && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) != 1 &&
        (SSL_set1_host(ssl, host) != 1 || SSL_set_tlsext_host_name(ssl, host) != 1)) {
        SSL_free(ssl);
        ssl = NULL;
    }
    ERR_clear_error();
    if (ssl)
        SSL_set_connect_state(ssl);
    return (struct tls_connection *)ssl;
}

const char *tls_distrust(struct tls_connection *connection)
{
    long result = SSL_get_verify_result(ssl_of(connection));
    return result == X509_V_OK ? NULL : X509_verify_cert_error_string(result);
}

void tls_shutdown(struct tls_connection *connection)
{
    SSL *ssl = ssl_of(connection);
    if (SSL_is_init_finished(ssl) && !(SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN))
        SSL_shutdown(ssl);
    ERR_clear_error();
}

void tls_connection_free(struct tls_connection **connection)
{
    if (!*connection)
        return;
    tls_shutdown(*connection);
    SSL_free(ssl_of(*connection));
    *connection = NULL;
}

/* Maps OpenSSL's result to that of recv() and send(): 0 at the end, or -1 with errno. */
static ssize_t translate_ssl_result(struct tls_connection *connection, int result)
{
    int code = SSL_get_error(ssl_of(connection), result);
    int system_error = errno;
    ERR_clear_error();
    switch (code) {
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_SYSCALL:
        errno = system_error && system_error != EAGAIN ? system_error : ECONNRESET;
        return -1;
    default:
        errno = EPROTO;
        return -1;
    }
}

ssize_t tls_read(struct tls_connection *connection, void *out, size_t max)
{
    int result = SSL_read(ssl_of(connection), out, max > INT_MAX ? INT_MAX : (int)max);
    return result > 0 ? result : translate_ssl_result(connection, result);
}

ssize_t tls_write(struct tls_connection *connection, const void *data, size_t len)
{
    int result = SSL_write(ssl_of(connection), data, len > INT_MAX ? INT_MAX : (int)len);
    return result > 0 ? result : translate_ssl_result(connection, result);
}

void tls_rest(struct tls_connection *connection)
{
    SSL_free_buffers(ssl_of(connection));
}
