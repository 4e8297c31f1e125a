#include "redis/protocol/redis_slot.h"

#include <stdbool.h>

/* CRC16-CCITT (XMODEM): polynomial 0x1021, four bits at a time. */
static uint16_t slot_crc16(struct slice bytes)
{
    static const uint16_t nibbles[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
                                         0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
                                         0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
    uint16_t crc = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t byte = (uint8_t)bytes.data[i];
        crc = (uint16_t)(crc << 4 ^ nibbles[crc >> 12 ^ byte >> 4]);
        crc = (uint16_t)(crc << 4 ^ nibbles[crc >> 12 ^ (byte & 0xf)]);
    }
    return crc;
}

uint16_t redis_slot(struct slice key)
{
    struct slice before;
    struct slice tag;
    struct slice rest = slice_split(key, '{', &before);
    bool tagged = rest.data && slice_split(rest, '}', &tag).data && tag.len > 0;
    return slot_crc16(tagged ? tag : key) % REDIS_SLOTS;
}

/* What each bit of a slot contributes to the number of its tag. CRC16 is linear: the tag's four letters carry 16 bits,
 * and these are the solutions for the 14 bits of the slot. */
static const uint16_t TAG_BITS[] = {0x1afa, 0x06ed, 0x277b, 0x110c, 0x2a91, 0x39c0, 0x1f63,
                                    0x277f, 0x1104, 0x2208, 0x1bea, 0x04cd, 0x233b, 0x198c};

enum {
    TAG_BIT_COUNT = sizeof(TAG_BITS) / sizeof(TAG_BITS[0]),
    TAG_ZERO_SLOT = 0x3639, /* the slot of the tag "@@@@" */
};

void redis_slot_write_tag(char out[REDIS_SLOT_TAG_LEN], uint16_t slot)
{
    unsigned number = 0;
    for (unsigned i = 0; i < TAG_BIT_COUNT; i++)
        if ((slot ^ TAG_ZERO_SLOT) >> i & 1)
            number ^= TAG_BITS[i];
    for (unsigned i = 0; i < REDIS_SLOT_TAG_LEN; i++)
        out[i] = (char)('@' | (number >> (12 - 4 * i) & 0xf));
}
