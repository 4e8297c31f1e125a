#include "app/fleet.h"

#include "config/address.h"
#include "log/log.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool load_fleet_redis(struct fleet *fleet, const struct config *config,
                             char error[FLEET_ERROR_TEXT_MAX])
{
    char why[REDIS_URL_ERROR_MAX];
    char tls_error[TLS_ERROR_TEXT_MAX];
    const char *ca_file = config->state.ca_file[0] ? config->state.ca_file : NULL;
    if (config->state.aggregators.count)
        return true; /* they have the connections to Redis */
    if (!redis_url_parse(slice_of(config->state.url), &fleet->redis, why)) {
        snprintf(error, FLEET_ERROR_TEXT_MAX, "state.url (--state): %s", why);
        return false;
    }
    if (!fleet->redis.tls)
        return true;
    fleet->redis_tls = tls_context_load_client(ca_file, tls_error);
    if (!fleet->redis_tls) {
        snprintf(error, FLEET_ERROR_TEXT_MAX, "state.ca_file: %s", tls_error);
        return false;
    }
    bool has_own = config->state.certificate_file[0] != '\0';
    if (!has_own || tls_context_show_certificate(fleet->redis_tls, config->state.certificate_file,
                                                 config->state.key_file, tls_error))
        return true;
    snprintf(error, FLEET_ERROR_TEXT_MAX, "state.certificate_file: %s", tls_error);
    return false;
}

static bool load_fleet_peer_tls(struct fleet *fleet, const struct config_peer *peer,
                                char error[FLEET_ERROR_TEXT_MAX])
{
    char why[TLS_ERROR_TEXT_MAX];
    bool accepts = peer->tls.certificate_file[0] != '\0';
    bool dials = accepts || peer->tls.ca_file[0] != '\0';
    if (accepts)
        fleet->peer_accept = tls_context_load(peer->tls.certificate_file, peer->tls.key_file, why);
    if (dials && (fleet->peer_accept || !accepts))
        fleet->peer_dial =
            tls_context_load_client(peer->tls.ca_file[0] ? peer->tls.ca_file : NULL, why);
    if (dials && !fleet->peer_dial)
        snprintf(error, FLEET_ERROR_TEXT_MAX, "peer.tls: %s", why);
    return !dials || fleet->peer_dial;
}

struct fleet *fleet_make(const struct config *config, struct slice process,
                         char error[FLEET_ERROR_TEXT_MAX])
{
    struct fleet *fleet = calloc(1, sizeof(*fleet));
    if (!fleet) {
        snprintf(error, FLEET_ERROR_TEXT_MAX, "out of memory");
        return NULL;
    }
    fleet->process = process;
    fleet->process_id = process_id_write(fleet->process_id_text);
    fleet->peer_secret = slice_of(config->peer.secret);
    if (!load_fleet_redis(fleet, config, error) ||
        !load_fleet_peer_tls(fleet, &config->peer, error))
        fleet_free(&fleet);
    return fleet;
}

void fleet_free(struct fleet **fleet)
{
    struct fleet *freed = *fleet;
    *fleet = NULL;
    if (!freed)
        return;
    tls_context_drop(&freed->redis_tls);
    tls_context_drop(&freed->peer_accept);
    tls_context_drop(&freed->peer_dial);
    OPENSSL_cleanse(&freed->redis, sizeof(freed->redis));
    free(freed);
}

/* A peer cannot connect to a wildcard address, so the host name stands for it. */
void fleet_note_port(struct fleet *fleet, const struct config *config, uint16_t port)
{
    struct address address;
    char name[HOST_NAME_MAX + 1] = "localhost";
    if (config->peer.advertise[0]) {
        snprintf(fleet->peer_address, sizeof(fleet->peer_address), "%s", config->peer.advertise);
        return;
    }
    address_parse(slice_of(config->peer.listen), &address);
    gethostname(name, sizeof(name) - 1);
    struct slice host = address_is_any(&address) ? slice_of(name) : address.host;
    bool bracketed = address.is_ipv6 && !address_is_any(&address);
    snprintf(fleet->peer_address, sizeof(fleet->peer_address), "%s%.*s%s:%u", bracketed ? "[" : "",
             SLICE_FORMAT(host), bracketed ? "]" : "", port);
}
