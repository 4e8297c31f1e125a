/* TLS over a link: the server's certificate must be valid for the host, and OpenSSL never blocks. */
#include "link.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* ---- the socket, as OpenSSL uses it ---- */

/* OpenSSL's own socket BIO would raise SIGPIPE, which belongs to the application. */
static int secure_bio_write(BIO *bio, const char *data, int len)
{
    struct link *link = BIO_get_data(bio);
    ssize_t went = send(link->fd, data, (size_t)len, MSG_NOSIGNAL);
    BIO_clear_retry_flags(bio);
    if (went < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
        BIO_set_retry_write(bio);
    link->connected |= went >= 0;
    return (int)went;
}

static int secure_bio_read(BIO *bio, char *data, int len)
{
    struct link *link = BIO_get_data(bio);
    ssize_t got = recv(link->fd, data, (size_t)len, 0);
    BIO_clear_retry_flags(bio);
    if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
        BIO_set_retry_read(bio);
    return (int)got;
}

static long secure_bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO *secure_make_bio(struct link *link)
{
    BIO_METHOD *method = link->tls_socket;
    if (!method)
        method = link->tls_socket =
            BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "client");
    if (!method || BIO_meth_set_write(method, secure_bio_write) != 1 ||
        BIO_meth_set_read(method, secure_bio_read) != 1 ||
        BIO_meth_set_ctrl(method, secure_bio_control) != 1)
        return NULL;
    BIO *bio = BIO_new(method);
    if (bio) {
        BIO_set_data(bio, link);
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* ---- starting ---- */

static const char *secure_make_context(struct link *link)
{
    const char *ca_file = link->target.ca_file;
    SSL_CTX *context = link->tls_context = SSL_CTX_new(TLS_client_method());
    if (!context)
        return "TLS is not available";
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* WebSocket frames have lengths, so a missing close_notify cuts nothing unnoticed */
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (ca_file ? SSL_CTX_load_verify_file(context, ca_file) == 1
                : SSL_CTX_set_default_verify_paths(context) == 1)
        return NULL;
    SSL_CTX_free(context);
    link->tls_context = NULL;
    return "the certificates in ca_file cannot be read";
}

/* An address must be in the certificate as an address, a name as a name. */
static bool secure_expect_host(SSL *tls, const char *host)
{
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), host) == 1 ||
           (SSL_set1_host(tls, host) == 1 && SSL_set_tlsext_host_name(tls, host) == 1);
}

const char *secure_start(struct link *link)
{
    const char *why = link->tls_context ? NULL : secure_make_context(link);
    if (why)
        return why;
    SSL *tls = SSL_new(link->tls_context);
    BIO *bio = tls ? secure_make_bio(link) : NULL;
    if (!bio || !secure_expect_host(tls, link->target.host)) {
        BIO_free(bio);
        SSL_free(tls);
        return "out of memory";
    }
    SSL_set_bio(tls, bio, bio);
    SSL_set_connect_state(tls);
    link->tls = tls;
    return NULL;
}

void secure_drop(struct link *link)
{
    SSL_free(link->tls);
    link->tls = NULL;
    link->tls_wants_write = false;
    link->tls_send_awaits_bytes = false;
}

void secure_free(struct link *link)
{
    secure_drop(link);
    SSL_CTX_free(link->tls_context);
    BIO_meth_free(link->tls_socket);
}

/* ---- bytes ---- */

static void secure_explain(struct link *link, int result)
{
    long verified = SSL_get_verify_result(link->tls);
    unsigned long error = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(error);
    if (verified != X509_V_OK)
        snprintf(link->tls_error, sizeof(link->tls_error),
                 "the server's certificate is not accepted: %s",
                 X509_verify_cert_error_string(verified));
    else if (SSL_get_error(link->tls, result) == SSL_ERROR_SYSCALL && errno)
        snprintf(link->tls_error, sizeof(link->tls_error), "%s", strerror(errno));
    else
        snprintf(link->tls_error, sizeof(link->tls_error), "TLS failed: %s",
                 reason ? reason : "the server hung up");
}

/* Returns what send() and recv() return: -1 with EAGAIN to wait, with EPROTO after a failure. */
static ssize_t secure_outcome(struct link *link, int result, bool sending)
{
    if (result > 0)
        return result;
    switch (SSL_get_error(link->tls, result)) {
    case SSL_ERROR_WANT_READ:
        link->tls_send_awaits_bytes |= sending;
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_WANT_WRITE:
        link->tls_wants_write = true;
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        secure_explain(link, result);
        errno = EPROTO;
        return -1;
    }
}

ssize_t secure_send(struct link *link, const void *data, size_t len)
{
    ERR_clear_error();
    errno = 0;
    return secure_outcome(link, SSL_write(link->tls, data, (int)len), true);
}

ssize_t secure_receive(struct link *link, void *data, size_t len)
{
    ERR_clear_error();
    errno = 0;
    return secure_outcome(link, SSL_read(link->tls, data, (int)len), false);
}
