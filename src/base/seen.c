#include "base/seen.h"

bool seen_note(struct seen *seen, uint64_t key)
{
    uint64_t wanted = key ? key : 1;
    uint64_t set = wanted % SEEN_SETS;
    for (unsigned i = 0; i < SEEN_WAYS; i++)
        if (seen->keys[set][i] == wanted)
            return false;
    seen->keys[set][seen->oldest[set]] = wanted;
    seen->oldest[set] = (uint8_t)((seen->oldest[set] + 1) % SEEN_WAYS);
    return true;
}
