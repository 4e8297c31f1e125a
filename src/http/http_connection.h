/*
 * One HTTP/1.1 connection: requests one after the other, until it is closed or becomes a WebSocket.
 *
 *   HEAD ──whole head──► BODY ──whole body──► ANSWERING ──answer ready──► SENDING ──sent──► HEAD
 *     │         ▲          │                                                 └──the last──► CLOSING
 *     │         └─ ANSWERING: the owner checks the head, such as its token, before the body is read
 *     │                      STREAMING: an answer in pieces; ANSWERING ──first piece──► STREAMING ──last──► SENDING
 *     └── bad or slow ─────┴──► an error is answered ──────► CLOSING ──sent──► gone
 *
 * Reading is paused while ANSWERING and SENDING: pipelined requests wait in the kernel's buffers, a client that reads
 * no answers gets no more of them, and a client that has shut down its side still gets all answers. A head that takes
 * longer than header_timeout, or a body that takes longer than message_seconds, is answered with 408; a connection that is idle, or does not read
 * its answer, is closed after idle_timeout. While an answer is held (exchange_hold()), reading goes on, so that
 * a closed connection is noticed; bytes received meanwhile wait in `in`.
 *
 * A connection can move to another worker after a head was read (http_connection_move_out(), …_move_in()), or come
 * from another process with the bytes read there (http_connection_accept_moved()).
 */
#ifndef ROLLCALL_HTTP_HTTP_CONNECTION_H
#define ROLLCALL_HTTP_HTTP_CONNECTION_H

#include "base/buffer.h"
#include "http/exchange.h"
#include "http/http_listener.h"
#include "net/stream.h"

enum http_state {
    HTTP_HEAD,
    HTTP_BODY,
    HTTP_ANSWERING,
    HTTP_STREAMING,
    HTTP_SENDING,
    HTTP_CLOSING
};

struct http_connection {
    struct stream stream;
    struct wheel_timer timer;
    struct http_listener *listener;
    struct list of_listener;
    struct list waiting;       /* in the listener's list, in HEAD and BODY */
    struct exchange *exchange; /* in BODY and ANSWERING */
    struct buffer in;          /* received and not parsed yet */
    size_t scanned;
    struct buffer out;
    size_t out_sent;
    enum http_state state;
    bool close_after; /* the answer closes the connection */
    bool proxied;     /* X-Forwarded-For names the client of each request */
    bool over_limit;  /* its address has too many connections: its request is refused */
};

/* Returns NULL when the owner takes no more connections or memory is short; socket and TLS connection then still
 * belong to the caller. `moved`: another loop had them before (stream_open_moved()). */
struct http_connection *http_connection_open(struct http_listener *listener, int fd,
                                             struct tls_connection *tls, bool moved);

/* A connection on its way from one worker of a process to another, after the head of a request was read and
 * before its body. */
struct http_moved_connection {
    int fd;
    struct tls_connection *tls;
    struct exchange *exchange;
    struct buffer in; /* received and not parsed yet */
};

/* Takes the connection off its loop. Returns false when it is closing; it stays then. */
bool http_connection_move_out(struct http_connection *connection,
                              struct http_moved_connection *moved);

/* Continues the connection on this worker, or closes it when the owner takes no more. Takes what `moved` holds. */
void http_connection_move_in(struct http_listener *listener, struct http_moved_connection *moved);

/* Continues a connection from another process; `bytes` were read there and start with a request's head. Takes
 * the descriptor; closes it when the owner takes no more connections. */
void http_connection_accept_moved(struct http_listener *listener, int fd, struct slice bytes);

/* The owner has checked the head of a request (HTTP_HEAD_WAITS): its body may come. */
void http_connection_read_body(struct exchange *exchange);

/* Refuses a request whose body is being read, because memory is short. */
void http_connection_shed(struct http_connection *connection);

/* Gives what was received of a body that is streamed to its sink, as far as that takes it. */
void http_connection_stream_body(struct http_connection *connection);

/* A piece of an answer is in `out`: sends it. */
void http_connection_stream_answer(struct http_connection *connection);

/* The answer is in `out`: sends it, then continues with the next request or closes. */
void http_connection_answered(struct http_connection *connection);

#endif
