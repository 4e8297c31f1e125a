#include "text/display_name.h"

bool display_name_valid(struct slice name)
{
    size_t characters = 0;
    for (size_t i = 0; i < name.len; i++) {
        unsigned char byte = (unsigned char)name.data[i];
        bool is_c1 = byte == 0xc2 && i + 1 < name.len && (unsigned char)name.data[i + 1] < 0xa0;
        if (byte < 0x20 || byte == 0x7f || is_c1)
            return false;
        characters += (byte & 0xc0) != 0x80;
    }
    return characters <= DISPLAY_NAME_CHARACTERS_MAX;
}
