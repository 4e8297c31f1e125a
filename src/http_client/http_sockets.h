/*
 * The sockets of an HTTP client, as sources of its loop. libcurl says for each socket what it waits for.
 *
 * libcurl wants nothing of a connection that is kept between two requests, and the same as before when the next request uses
 * it. So a connection stays registered meanwhile, which saves two system calls a request; when an unwanted event comes (the
 * server has closed it), it is registered no longer, and libcurl finds out when it uses it.
 *
 * Sockets that http_sockets_open() made last until http_sockets_close(). The others are libcurl's own, for name lookups, and
 * are forgotten as soon as libcurl wants nothing of them: it closes them by itself. libcurl may leave bytes unread, so all are
 * level-triggered.
 */
#ifndef ROLLCALL_HTTP_CLIENT_HTTP_SOCKETS_H
#define ROLLCALL_HTTP_CLIENT_HTTP_SOCKETS_H

#include "base/list.h"
#include "net/loop.h"

#include <curl/curl.h>

/* The owner's: this socket has these events (CURL_CSELECT_*). */
typedef void (*http_sockets_ready)(void *arg, curl_socket_t fd, int action);

struct http_sockets {
    struct loop *loop;
    http_sockets_ready on_ready;
    void *arg;
    struct list all; /* not many: the client's requests in flight bound the connections */
};

void http_sockets_init(struct http_sockets *sockets, struct loop *loop, http_sockets_ready on_ready,
                       void *arg);

/* Forgets what libcurl has left open; after curl_multi_cleanup(). */
void http_sockets_free(struct http_sockets *sockets);

/* Makes a socket. Returns CURL_SOCKET_BAD on failure. */
curl_socket_t http_sockets_open(struct http_sockets *sockets, const struct curl_sockaddr *address);

/* A CURLOPT_CLOSESOCKETFUNCTION; its argument is the sockets. */
int http_sockets_close(void *arg, curl_socket_t fd);

/* Watches a socket for CURL_POLL_IN, OUT or both, or CURL_POLL_REMOVE. Returns false on failure. */
bool http_sockets_watch(struct http_sockets *sockets, curl_socket_t fd, int what);

#endif
