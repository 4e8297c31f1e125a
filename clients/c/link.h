/*
 * A non-blocking TCP connection to the server, with or without TLS. Internal; used by the WebSocket (transport.c) and
 * by HTTP requests (api.c).
 *
 * A link is dialled, used until it fails or is dropped, and then dialled again. It keeps the TLS context over all of
 * its connections. One thread at a time; the owner of the link frees it with link_free().
 */
#ifndef ROLLCALL_CLIENTS_C_LINK_H
#define ROLLCALL_CLIENTS_C_LINK_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { LINK_ERROR_BYTES = 192 };

/* Borrowed for as long as the link lives. */
struct link_target {
    const char *host;
    uint16_t port;
    bool tls;
    const char *ca_file; /* NULL: the system's certificates */
};

struct link {
    struct link_target target;
    int fd;         /* -1: none */
    bool connected; /* the TCP connection is established */

    struct ssl_ctx_st *tls_context; /* these NULL without TLS */
    struct bio_method_st *tls_socket;
    struct ssl_st *tls;               /* of the current connection */
    bool tls_wants_write;             /* whatever was last tried waits until it can write */
    bool tls_send_awaits_bytes;       /* sending waits for bytes of the server */
    char tls_error[LINK_ERROR_BYTES]; /* why TLS failed */
};

/* Starts to connect. A name may have several addresses: each attempt tries the next. Returns what went wrong, or
 * NULL. */
const char *link_dial(struct link *link, unsigned attempt);

/* As send() and recv(). After a failure link_error() has the reason. */
ssize_t link_send(struct link *link, const void *data, size_t len);
ssize_t link_receive(struct link *link, void *data, size_t len);
const char *link_error(const struct link *link);

/* The events to wait for; has_output: there are bytes to send. */
short link_poll_events(const struct link *link, bool has_output);

/* Call before a turn of sending and receiving. Returns whether to receive whatever poll() says: a write that TLS
 * could not make may have been a part of reading. */
bool link_begin_turn(struct link *link);

void link_drop(struct link *link);
void link_free(struct link *link);

/* Parts of a request: the Host header, and a text in a path or a query. */
void link_write_host(struct buffer *out, const struct link_target *target);
void link_write_escaped(struct buffer *out, const char *text);

/* secure.c: TLS on the link. */
/* Returns what went wrong, or NULL; then secure_send() and secure_receive() replace send() and recv(). */
const char *secure_start(struct link *link);
void secure_drop(struct link *link);
void secure_free(struct link *link);
/* As send() and recv(); after EPROTO, `tls_error` has the reason. */
ssize_t secure_send(struct link *link, const void *data, size_t len);
ssize_t secure_receive(struct link *link, void *data, size_t len);

#endif
