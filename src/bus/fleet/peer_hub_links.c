/* The links of a hub: those it dials, those it accepts, and those the registry of gateways names. */
#include "bus/fleet/peer_hub_internal.h"
#include "bus/fleet/peer_index.h"
#include "log/log.h"

#include <unistd.h>

enum { ACCEPT_QUEUE_MAX = 1024, UNSENT_BYTES_MAX = 256 * 1024 };

/* ---- dialled links ---- */

static void on_dialed_peer_opened(struct peer_dialer *dialer, void *arg, struct slice name)
{
    (void)dialer;
    struct roster_entry *entry = arg;
    if (slice_equal(name, entry->hub->options.name)) {
        entry->is_self = true;
        peer_dialer_end(entry->dialer);
        return;
    }
    peer_roster_opened(entry, name);
}

static void on_dialed_peer_frame(struct peer_dialer *dialer, void *arg, struct slice frame)
{
    (void)dialer;
    const struct roster_entry *entry = arg;
    peer_hub_take_frame(entry->hub, frame);
}

static void on_dialed_peer_closed(struct peer_dialer *dialer, void *arg, const char *why)
{
    (void)dialer, (void)why;
    peer_roster_closed(arg);
}

static void on_dialed_peer_ended(void *arg)
{
    struct roster_entry *entry = arg;
    entry->dialer = NULL;
    if (entry->forgotten)
        peer_roster_remove(entry);
}

static const struct peer_dialer_owner HUB_DIALER_OWNER = {.on_opened = on_dialed_peer_opened,
                                                          .on_frame = on_dialed_peer_frame,
                                                          .on_closed = on_dialed_peer_closed,
                                                          .on_ended = on_dialed_peer_ended};

static struct peer_link_options peer_hub_link_options(const struct peer_hub *hub,
                                                      struct tls_context *tls)
{
    return (struct peer_link_options){
        .loop = hub->options.loop,
        .streams = hub->options.streams,
        .random = hub->options.random,
        .secret = hub->options.secret,
        .name = hub->options.name,
        .tls = tls,
    };
}

static struct roster_entry *peer_hub_dial(struct peer_hub *hub, struct slice address)
{
    struct peer_link_options options = peer_hub_link_options(hub, hub->options.tls_dial);
    struct roster_entry *entry = peer_roster_add(&hub->roster, address, hub);
    if (!entry)
        return NULL;
    entry->dialer = peer_dialer_make(&options, entry->address, &HUB_DIALER_OWNER, entry);
    if (entry->dialer)
        return entry;
    peer_roster_remove(entry);
    return NULL;
}

bool peer_hub_add(struct peer_hub *hub, const char *address)
{
    struct roster_entry *entry = peer_roster_find_address(&hub->roster, slice_of(address));
    if (!entry)
        entry = peer_hub_dial(hub, slice_of(address));
    if (entry)
        entry->learned = false;
    return entry != NULL;
}

/* ---- the registry ---- */

/* What one pass over the registry looks up, so that its cost grows with the number of gateways and links, and not with
 * their product. */
struct registry_pass {
    struct peer_index linked;     /* names of the processes that have a link, and this one's */
    struct peer_index addresses;  /* of dialled entries → struct roster_entry */
    struct peer_index registered; /* names that a process with one of the gateways can have */
};

/* Returns the name of the process that has this gateway as one of several; SLICE_NONE: it can only be its only one. */
static struct slice peer_hub_numbered_process(struct slice gateway_id)
{
    size_t len = gateway_id.len;
    while (len > 0 && gateway_id.data[len - 1] >= '0' && gateway_id.data[len - 1] <= '9')
        len--;
    bool is_numbered = len > 1 && len < gateway_id.len && gateway_id.data[len - 1] == '-';
    return is_numbered ? slice_first(gateway_id, len - 1) : SLICE_NONE;
}

static bool peer_index_has_process(const struct peer_index *names, struct slice gateway_id)
{
    struct slice process = peer_hub_numbered_process(gateway_id);
    return peer_index_find(names, gateway_id) || (process.data && peer_index_find(names, process));
}

static void registry_pass_end(struct registry_pass *pass)
{
    peer_index_free(&pass->linked);
    peer_index_free(&pass->addresses);
    peer_index_free(&pass->registered);
}

static bool registry_pass_begin(struct registry_pass *pass, struct peer_hub *hub,
                                const struct peer_hub_entry *entries, size_t count)
{
    *pass = (struct registry_pass){0};
    bool made = peer_index_init(&pass->linked, hub->roster.count + 1) &&
                peer_index_init(&pass->addresses, hub->roster.count + count) &&
                peer_index_init(&pass->registered, 2 * count);
    if (!made) {
        registry_pass_end(pass);
        return false;
    }
    peer_index_add(&pass->linked, hub->options.name, NULL);
    for (struct list *at = hub->roster.entries.next; at != &hub->roster.entries; at = at->next) {
        struct roster_entry *entry = roster_entry_of(at);
        entry->named = false;
        if (entry->chosen)
            peer_index_add(&pass->linked, roster_entry_name(entry), entry);
        if (entry->address_len && !entry->forgotten)
            peer_index_add(&pass->addresses, (struct slice){entry->address, entry->address_len},
                           entry);
    }
    for (size_t i = 0; i < count; i++) {
        struct slice process = peer_hub_numbered_process(entries[i].gateway_id);
        if (entries[i].gateway_id.len == 0)
            continue;
        peer_index_add(&pass->registered, entries[i].gateway_id, NULL);
        if (process.data)
            peer_index_add(&pass->registered, process, NULL);
    }
    return true;
}

static void peer_hub_forget_unnamed(struct peer_hub *hub)
{
    struct list *at = hub->roster.entries.next;
    while (at != &hub->roster.entries) {
        struct roster_entry *entry = roster_entry_of(at);
        at = at->next;
        if (!entry->learned || entry->named || entry->open)
            continue;
        entry->forgotten = true;
        if (entry->dialer)
            peer_dialer_end(entry->dialer);
        else
            peer_roster_remove(entry);
    }
}

/* An entry whose process has no gateways counts as registered. */
static bool roster_entry_is_lost(const struct roster_entry *entry, const struct registry_pass *pass)
{
    struct slice name = roster_entry_name(entry);
    return entry->chosen && peer_hub_has_gateways(name) &&
           !peer_index_find(&pass->registered, name);
}

static void registry_pass_name(struct registry_pass *pass, struct peer_hub *hub,
                               const struct peer_hub_entry *named)
{
    const struct peer_index_place *place = peer_index_find(&pass->addresses, named->address);
    struct roster_entry *entry = place ? place->value : NULL;
    if (!entry && !peer_index_has_process(&pass->linked, named->gateway_id)) {
        entry = peer_hub_dial(hub, named->address);
        if (entry) {
            entry->learned = true;
            peer_index_add(&pass->addresses, named->address, entry);
        }
    }
    if (entry)
        entry->named = true;
}

void peer_hub_learn(struct peer_hub *hub, const struct peer_hub_entry *entries, size_t count)
{
    struct registry_pass pass;
    if (!registry_pass_begin(&pass, hub, entries, count))
        return;
    for (size_t i = 0; i < count; i++)
        if (entries[i].address.len && entries[i].gateway_id.len)
            registry_pass_name(&pass, hub, &entries[i]);
    peer_hub_forget_unnamed(hub);
    for (struct list *at = hub->roster.entries.next; at != &hub->roster.entries; at = at->next)
        peer_roster_set_lost(roster_entry_of(at), roster_entry_is_lost(roster_entry_of(at), &pass));
    registry_pass_end(&pass);
}

/* ---- accepted links ---- */

static void on_accepted_peer_opened(struct peer_link *link, void *arg, struct slice name)
{
    (void)link;
    struct roster_entry *entry = arg;
    pending_peers_remove(&entry->hub->pending, &entry->pending);
    entry->is_self = slice_equal(name, entry->hub->options.name);
    if (!entry->is_self) /* else this hub dialled itself: its dialler ends the link */
        peer_roster_opened(entry, name);
}

static void on_accepted_peer_frame(struct peer_link *link, void *arg, struct slice frame)
{
    (void)link;
    const struct roster_entry *entry = arg;
    if (!entry->is_self)
        peer_hub_take_frame(entry->hub, frame);
}

static void on_accepted_peer_closed(struct peer_link *link, void *arg, const char *why)
{
    (void)link;
    struct roster_entry *entry = arg;
    if (entry->open) {
        log_info("peer_link_closed", "peer=%s why=%s", log_quote(roster_entry_name(entry)),
                 log_sentence(slice_of(why)));
        peer_roster_closed(entry);
    } else if (!entry->is_self) {
        pending_peers_remove(&entry->hub->pending, &entry->pending);
        log_warn("peer_link_refused", "why=%s", log_sentence(slice_of(why)));
    }
    peer_roster_remove(entry);
}

static const struct peer_link_owner HUB_LINK_OWNER = {.on_opened = on_accepted_peer_opened,
                                                      .on_frame = on_accepted_peer_frame,
                                                      .on_closed = on_accepted_peer_closed};

static void on_hub_link_accepted(void *arg, int fd)
{
    struct peer_hub *hub = arg;
    struct peer_link_options options = peer_hub_link_options(hub, hub->options.tls_accept);
    struct roster_entry *entry = peer_roster_add(&hub->roster, SLICE_NONE, hub);
    if (!entry) {
        close(fd);
        return;
    }
    entry->link = peer_link_accept(&options, fd, &HUB_LINK_OWNER, entry);
    if (!entry->link) {
        peer_roster_remove(entry);
        close(fd);
        return;
    }
    pending_peers_add(&hub->pending, &entry->pending, entry->link);
}

bool peer_hub_listen(struct peer_hub *hub, const char *address, char error[LISTENER_ERROR_TEXT_MAX])
{
    struct listener_options options = {.address = address,
                                       .accept_queue_max = ACCEPT_QUEUE_MAX,
                                       .unsent_bytes_max = UNSENT_BYTES_MAX};
    return listener_open(&hub->listener, hub->options.loop, &options, on_hub_link_accepted, hub,
                         error);
}

uint16_t peer_hub_port(const struct peer_hub *hub)
{
    return hub->listener.port;
}
