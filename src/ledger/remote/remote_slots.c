#include "ledger/remote/remote_slots.h"

#include "base/container.h"

#include <assert.h>

enum { NO_SLOT = REMOTE_SLOTS, GENERATION_SHIFT = 32 };

void remote_slots_init(struct remote_slots *slots)
{
    slots->first_free = NO_SLOT;
    list_init(&slots->in_flight);
}

uint32_t remote_slots_put(struct remote_slots *slots, struct ledger_request *request)
{
    uint32_t index = slots->first_free;
    if (index != NO_SLOT)
        slots->first_free = slots->slots[index].next_free;
    else
        index = slots->used_end++;
    assert(index < REMOTE_SLOTS);
    slots->slots[index].request = request;
    slots->slots[index].sends = 0;
    list_append(&slots->in_flight, &slots->slots[index].place);
    slots->count++;
    return index;
}

struct ledger_request *remote_slots_take(struct remote_slots *slots, uint32_t index)
{
    struct remote_slot *slot = &slots->slots[index];
    struct ledger_request *request = slot->request;
    slot->request = NULL;
    list_remove(&slot->place);
    slot->generation++;
    slot->next_free = slots->first_free;
    slots->first_free = index;
    slots->count--;
    return request;
}

uint32_t remote_slots_index(const struct remote_slots *slots, const struct list *place)
{
    return (uint32_t)(CONTAINER_OF(place, struct remote_slot, place) - slots->slots);
}

uint64_t remote_slots_id(const struct remote_slots *slots, uint32_t index)
{
    return (uint64_t)slots->slots[index].generation << GENERATION_SHIFT | index;
}

bool remote_slots_find(const struct remote_slots *slots, uint64_t id, uint32_t *index)
{
    uint32_t low = (uint32_t)id;
    if (low >= REMOTE_SLOTS || !slots->slots[low].request || remote_slots_id(slots, low) != id)
        return false;
    *index = low;
    return true;
}
