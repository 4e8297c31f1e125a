/*
 * One HTTP/1.1 connection: requests one after the other, until it is closed or becomes a WebSocket.
 *
 *   HEAD ──whole head──► BODY ──whole body──► ANSWERING ──answer ready──► SENDING ──sent──► HEAD
 *     │                    │                                                 └──the last──► CLOSING
 *     └── bad or slow ─────┴──► an error is answered ──────► CLOSING ──sent──► gone
 *
 * Reading is paused while ANSWERING and SENDING, so that a peer that pipelines waits in the kernel's
 * buffers, one that takes no answers gets no more of them, and one that has shut its side down hears
 * all it asked for. A head or body that takes longer than header_timeout is answered 408; a connection
 * that is idle, or does not take its answer, is closed after idle_timeout. While an answer is held
 * (exchange_hold()), reading goes on, so that a peer that goes is noticed; what it sends waits in `in`.
 */
#ifndef ROLLCALL_HTTP_HTTP_SESSION_H
#define ROLLCALL_HTTP_HTTP_SESSION_H

#include "base/buffer.h"
#include "http/exchange.h"
#include "http/http_listener.h"
#include "net/stream.h"

enum http_state { HTTP_HEAD, HTTP_BODY, HTTP_ANSWERING, HTTP_SENDING, HTTP_CLOSING };

struct http_session {
    struct stream stream;
    struct wheel_timer timer;
    struct http_listener *door;
    struct list of_door;
    struct list waiting;       /* among the door's, in HEAD and BODY */
    struct exchange *exchange; /* in BODY and ANSWERING */
    struct buffer in;          /* read and not used yet */
    size_t scanned;
    struct buffer out;
    size_t out_sent;
    enum http_state state;
    bool close_after; /* the answer is the last */
};

/* NULL when there is no room or no memory; socket and TLS session are then still the caller's. `moved`: another
 * loop had them before (stream_open_moved()). */
struct http_session *http_session_open(struct http_listener *door, int fd, struct tls_session *tls,
                                       bool moved);

/* A connection on its way from one worker of a process to another: the head of a request is read, its body is
 * not. */
struct http_parcel {
    int fd;
    struct tls_session *tls;
    struct exchange *exchange;
    struct buffer in; /* read and not used yet */
};

/* Takes the connection off its loop. False: it stays, since it is closing. */
bool http_session_pack(struct http_session *session, struct http_parcel *parcel);

/* Goes on with it on this worker; closes it when that has no room. Takes what the parcel holds. */
void http_session_unpack(struct http_listener *door, struct http_parcel *parcel);

/* A connection from another process, with what it read there: from the head of a request on. Takes the
 * descriptor; closes it when there is no room. */
void http_session_accept_moved(struct http_listener *door, int fd, struct slice bytes);

/* Queues an answer's bytes (head and body) and goes on with the next request, or closes. */
void http_session_answered(struct http_session *session, bool close_after);

#endif
