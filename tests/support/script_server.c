#include "support/script_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

void script_server_start(struct script_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    memset(server, 0, sizeof(*server));
    for (size_t i = 0; i < SCRIPT_SERVER_CONNECTIONS_MAX; i++)
        server->fds[i] = -1;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server->listener, SCRIPT_SERVER_CONNECTIONS_MAX), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d", ntohs(address.sin_port));
}

static void close_script_connection(struct script_server *server, size_t at)
{
    if (server->fds[at] >= 0)
        close(server->fds[at]);
    server->fds[at] = -1;
    server->partial_len[at] = 0;
}

void script_server_stop(struct script_server *server)
{
    for (size_t i = 0; i < SCRIPT_SERVER_CONNECTIONS_MAX; i++)
        close_script_connection(server, i);
    close(server->listener);
}

void script_server_then(struct script_server *server, const char *answer)
{
    assert_true(server->answer_count < SCRIPT_SERVER_EXCHANGES_MAX);
    server->answers[server->answer_count++] = answer;
}

void script_server_restart_script(struct script_server *server)
{
    server->answer_count = server->request_count = 0;
}

static void accept_script_connections(struct script_server *server)
{
    for (size_t i = 0; i < SCRIPT_SERVER_CONNECTIONS_MAX; i++) {
        if (server->fds[i] >= 0)
            continue;
        server->fds[i] = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK);
        if (server->fds[i] < 0)
            return;
        server->connection_count++;
    }
}

/* Returns the length of the whole request at the start of `text`; 0: there is more to come. */
static size_t whole_request_len(const char *text)
{
    const char *head_end = strstr(text, "\r\n\r\n");
    const char *length = strcasestr(text, "\r\nContent-Length:");
    if (!head_end)
        return 0;
    size_t len = (size_t)(head_end - text) + 4;
    if (length && length < head_end)
        len += strtoul(length + 17, NULL, 10);
    return strlen(text) < len ? 0 : len;
}

static void answer_request(struct script_server *server, size_t at, size_t len)
{
    size_t n = server->request_count;
    assert_true(n < SCRIPT_SERVER_EXCHANGES_MAX);
    memcpy(server->requests[n], server->partial[at], len);
    server->requests[n][len] = '\0';
    server->request_count++;
    server->partial_len[at] -= len;
    memmove(server->partial[at], server->partial[at] + len, server->partial_len[at] + 1);
    const char *answer = n < server->answer_count ? server->answers[n] : NULL;
    if (!answer)
        return;
    assert_int_equal(write(server->fds[at], answer, strlen(answer)), (ssize_t)strlen(answer));
    if (strstr(answer, "Connection: close"))
        close_script_connection(server, at);
}

static void read_script_connection(struct script_server *server, size_t at)
{
    char *partial = server->partial[at];
    size_t have = server->partial_len[at];
    ssize_t got = read(server->fds[at], partial + have, SCRIPT_SERVER_REQUEST_BYTES_MAX - 1 - have);
    if (got == 0)
        close_script_connection(server, at);
    if (got <= 0)
        return;
    server->partial_len[at] += (size_t)got;
    partial[server->partial_len[at]] = '\0';
    size_t len;
    while (server->fds[at] >= 0 && (len = whole_request_len(partial)))
        answer_request(server, at, len);
}

void script_server_serve(struct script_server *server)
{
    accept_script_connections(server);
    for (size_t i = 0; i < SCRIPT_SERVER_CONNECTIONS_MAX; i++)
        if (server->fds[i] >= 0)
            read_script_connection(server, i);
}
