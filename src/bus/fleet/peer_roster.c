#include "bus/fleet/peer_roster.h"

#include <stdlib.h>
#include <string.h>

void peer_roster_init(struct peer_roster *roster, size_t count_max, struct metrics *metrics)
{
    *roster = (struct peer_roster){.metrics = metrics, .count_max = count_max};
    list_init(&roster->members);
}

struct peer_member *peer_roster_add(struct peer_roster *roster, struct slice address,
                                    struct peer_hub *hub)
{
    if (roster->count >= roster->count_max)
        return NULL;
    struct peer_member *member = calloc(1, sizeof(*member) + address.len + 1);
    if (!member)
        return NULL;
    member->roster = roster;
    member->hub = hub;
    member->address_len = address.len;
    if (address.len)
        memcpy(member->address, address.data, address.len);
    list_append(&roster->members, &member->place);
    roster->count++;
    return member;
}

void peer_roster_remove(struct peer_member *member)
{
    list_remove(&member->place);
    member->roster->count--;
    free(member);
}

static void peer_member_set_chosen(struct peer_member *member, bool chosen)
{
    struct peer_roster *roster = member->roster;
    member->chosen = chosen;
    if (chosen)
        atomic_fetch_add(&roster->chosen_count, 1);
    else
        atomic_fetch_sub(&roster->chosen_count, 1);
    metrics_set(roster->metrics, METRIC_PEER_LINKS_OPEN,
                (int64_t)atomic_load(&roster->chosen_count));
}

void peer_roster_set_lost(struct peer_member *member, bool lost)
{
    if (lost && !member->lost)
        atomic_fetch_add(&member->roster->lost_count, 1);
    if (!lost && member->lost)
        atomic_fetch_sub(&member->roster->lost_count, 1);
    member->lost = lost;
}

/* Returns another open member with the same name, or NULL. */
static struct peer_member *peer_member_find_open_sibling(struct peer_member *of)
{
    struct list *head = &of->roster->members;
    for (struct list *at = head->next; at != head; at = at->next) {
        struct peer_member *member = peer_member_of(at);
        if (member != of && member->open &&
            slice_equal(peer_member_name(member), peer_member_name(of)))
            return member;
    }
    return NULL;
}

void peer_roster_opened(struct peer_member *member, struct slice name)
{
    member->open = true;
    member->name_len = name.len;
    memcpy(member->name, name.data, name.len);
    if (!peer_member_find_open_sibling(member))
        peer_member_set_chosen(member, true);
}

void peer_roster_closed(struct peer_member *member)
{
    bool was_chosen = member->chosen;
    member->open = false;
    if (!was_chosen)
        return;
    peer_roster_set_lost(member, false);
    peer_member_set_chosen(member, false);
    struct peer_member *other = peer_member_find_open_sibling(member);
    if (other)
        peer_member_set_chosen(other, true);
}

struct peer_member *peer_roster_find_address(struct peer_roster *roster, struct slice address)
{
    for (struct list *at = roster->members.next; at != &roster->members; at = at->next) {
        struct peer_member *member = peer_member_of(at);
        if (member->address_len && !member->forgotten &&
            slice_equal((struct slice){member->address, member->address_len}, address))
            return member;
    }
    return NULL;
}
