/*
 * TLS for streams: OpenSSL behind four functions shaped like recv(2) and send(2).
 *
 * A context is a certificate and a key, loaded from files, immutable and counted by reference across
 * threads: a reload makes a new one for new connections, and those that are open keep theirs. TLS 1.2
 * and later, no compression, no renegotiation, session tickets on. The handshake happens inside the
 * first reads. An idle session gives its record buffers back (tls_rest()).
 */
#ifndef ROLLCALL_SOCKET_TLS_H
#define ROLLCALL_SOCKET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TLS_ERROR_TEXT_MAX = 256 };

struct tls_context;
struct tls_session;

/* Reads PEM files. NULL with a sentence in `error` that names the file; `error` is not secret. */
struct tls_context *tls_context_load(const char *certificate_file, const char *key_file,
                                     char error[TLS_ERROR_TEXT_MAX]);
struct tls_context *tls_context_share(struct tls_context *context);
void tls_context_drop(struct tls_context **context);

/* A server's session on a connected socket, which stays the caller's. NULL when memory is short. */
struct tls_session *tls_session_make(struct tls_context *context, int fd);
void tls_session_free(struct tls_session **session);

/* As recv() and send() on a non-blocking socket: -1 with errno EAGAIN when the socket must become
 * readable or writable first, with EPROTO when the peer does not speak TLS. After EAGAIN a write is
 * repeated with the same bytes first. */
ssize_t tls_read(struct tls_session *session, void *out, size_t max);
ssize_t tls_write(struct tls_session *session, const void *data, size_t len);

/* Tells the peer, where the socket takes it now, that nothing more will be written. */
void tls_shutdown(struct tls_session *session);

void tls_rest(struct tls_session *session);

#endif
