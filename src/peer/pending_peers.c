#include "peer/pending_peers.h"

#include "base/container.h"

void peer_strangers_init(struct peer_strangers *strangers, size_t count_max)
{
    *strangers = (struct peer_strangers){.count_max = count_max};
    list_init(&strangers->places);
}

static void displace_oldest(struct peer_strangers *strangers)
{
    struct peer_stranger *oldest =
        CONTAINER_OF(strangers->places.next, struct peer_stranger, place);
    peer_link_refuse(oldest->link, "others came before it had proved itself");
    peer_strangers_remove(strangers, oldest);
    strangers->displaced++;
}

void peer_strangers_add(struct peer_strangers *strangers, struct peer_stranger *stranger,
                        struct peer_link *link)
{
    if (strangers->count == strangers->count_max)
        displace_oldest(strangers);
    stranger->link = link;
    list_append(&strangers->places, &stranger->place);
    strangers->count++;
}

void peer_strangers_remove(struct peer_strangers *strangers, struct peer_stranger *stranger)
{
    if (!stranger->link)
        return;
    stranger->link = NULL;
    list_remove(&stranger->place);
    strangers->count--;
}
