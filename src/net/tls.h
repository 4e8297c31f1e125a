/*
 * TLS for streams: OpenSSL behind functions shaped like recv(2) and send(2).
 *
 * A server's context is a certificate and a key; a client's is the set of certificates that it trusts. A context is
 * loaded from files, immutable, and counted by reference across threads: a reload makes a new one for new
 * connections, and open connections keep theirs. TLS 1.2 and later, no compression, no renegotiation,
 * tickets on. The handshake happens inside the first reads, or a client's first write. A client
 * checks the server's certificate and that it was issued for the host it connected to. An idle connection frees
 * its record buffers (tls_rest()).
 */
#ifndef ROLLCALL_NET_TLS_H
#define ROLLCALL_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TLS_ERROR_TEXT_MAX = 256 };

struct tls_context;
struct tls_connection;

/* Reads PEM files. Returns NULL with a sentence in `error` that names the file and holds no secret. */
struct tls_context *tls_context_load(const char *certificate_file, const char *key_file,
                                     char error[TLS_ERROR_TEXT_MAX]);

/* For clients: trusts the certificates in this PEM file, or those of the system when it is NULL. */
struct tls_context *tls_context_load_client(const char *ca_file, char error[TLS_ERROR_TEXT_MAX]);

/* For clients: shows servers that ask for one this certificate, from PEM files. Returns false like tls_context_load(). */
bool tls_context_show_certificate(struct tls_context *context, const char *certificate_file,
                                  const char *key_file, char error[TLS_ERROR_TEXT_MAX]);
struct tls_context *tls_context_share(struct tls_context *context);
void tls_context_drop(struct tls_context **context);

/* A server's connection on a connected socket, which the caller keeps. Returns NULL when out of memory. */
struct tls_connection *tls_connection_make(struct tls_context *context, int fd);

/* A client's connection with the server of that name or numeric address. The socket may still be
 * connecting. */
struct tls_connection *tls_connection_make_client(struct tls_context *context, int fd,
                                                  const char *host);
void tls_connection_free(struct tls_connection **connection);

/* Returns why the server's certificate is not trusted; NULL when it is, or was not received yet. */
const char *tls_distrust(struct tls_connection *connection);

/* Like recv() and send() on a non-blocking socket: -1 with errno EAGAIN when the socket must become
 * readable or writable first, with EPROTO when the other side does not speak TLS. After EAGAIN a write must
 * be repeated with the same bytes first. */
ssize_t tls_read(struct tls_connection *connection, void *out, size_t max);
ssize_t tls_write(struct tls_connection *connection, const void *data, size_t len);

/* Sends close_notify once, if the socket is writable now; does not wait for that of the other side. */
void tls_shutdown(struct tls_connection *connection);

/* Frees the buffers of an idle connection. */
void tls_rest(struct tls_connection *connection);

#endif
