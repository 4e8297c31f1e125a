#include "bus/fleet/peer_roster.h"

#include "bus/fleet/peer_hub_internal.h"

#include <stdlib.h>
#include <string.h>

void peer_roster_init(struct peer_roster *roster, size_t count_max, struct metrics *metrics)
{
    *roster = (struct peer_roster){.metrics = metrics, .count_max = count_max};
    list_init(&roster->entries);
}

struct roster_entry *peer_roster_add(struct peer_roster *roster, struct slice address,
                                     struct peer_hub *hub)
{
    if (roster->count >= roster->count_max)
        return NULL;
    struct roster_entry *entry = calloc(1, sizeof(*entry) + address.len + 1);
    if (!entry)
        return NULL;
    entry->roster = roster;
    entry->hub = hub;
    entry->address_len = address.len;
    if (address.len)
        memcpy(entry->address, address.data, address.len);
    list_append(&roster->entries, &entry->place);
    roster->count++;
    return entry;
}

void peer_roster_remove(struct roster_entry *entry)
{
    list_remove(&entry->place);
    entry->roster->count--;
    free(entry);
}

static void roster_entry_set_chosen(struct roster_entry *entry, bool chosen)
{
    struct peer_roster *roster = entry->roster;
    size_t gateways = peer_hub_has_gateways(roster_entry_name(entry)) ? 1 : 0;
    entry->chosen = chosen;
    if (chosen) {
        atomic_fetch_add(&roster->chosen_count, 1);
        atomic_fetch_add(&roster->gateway_count, gateways);
    } else {
        atomic_fetch_sub(&roster->chosen_count, 1);
        atomic_fetch_sub(&roster->gateway_count, gateways);
    }
    metrics_set(roster->metrics, METRIC_PEER_LINKS_OPEN,
                (int64_t)atomic_load(&roster->chosen_count));
}

void peer_roster_set_lost(struct roster_entry *entry, bool lost)
{
    if (lost && !entry->lost)
        atomic_fetch_add(&entry->roster->lost_count, 1);
    if (!lost && entry->lost)
        atomic_fetch_sub(&entry->roster->lost_count, 1);
    entry->lost = lost;
}

/* Returns another open entry with the same name, or NULL. */
static struct roster_entry *roster_entry_find_open_sibling(struct roster_entry *of)
{
    struct list *head = &of->roster->entries;
    for (struct list *at = head->next; at != head; at = at->next) {
        struct roster_entry *entry = roster_entry_of(at);
        if (entry != of && entry->open &&
            slice_equal(roster_entry_name(entry), roster_entry_name(of)))
            return entry;
    }
    return NULL;
}

void peer_roster_opened(struct roster_entry *entry, struct slice name)
{
    entry->open = true;
    entry->name_len = name.len;
    memcpy(entry->name, name.data, name.len);
    if (!roster_entry_find_open_sibling(entry))
        roster_entry_set_chosen(entry, true);
}

void peer_roster_closed(struct roster_entry *entry)
{
    bool was_chosen = entry->chosen;
    entry->open = false;
    if (!was_chosen)
        return;
    peer_roster_set_lost(entry, false);
    roster_entry_set_chosen(entry, false);
    struct roster_entry *other = roster_entry_find_open_sibling(entry);
    if (other)
        roster_entry_set_chosen(other, true);
}

struct roster_entry *peer_roster_find_address(struct peer_roster *roster, struct slice address)
{
    for (struct list *at = roster->entries.next; at != &roster->entries; at = at->next) {
        struct roster_entry *entry = roster_entry_of(at);
        if (entry->address_len && !entry->forgotten &&
            slice_equal((struct slice){entry->address, entry->address_len}, address))
            return entry;
    }
    return NULL;
}
