#include "auth/user_id.h"

#include "text/utf8.h"

bool user_id_valid(struct slice id)
{
    if (id.len == 0 || id.len > USER_ID_BYTES_MAX || !utf8_valid(id))
        return false;
    for (size_t i = 0; i < id.len; i++) {
        unsigned char byte = (unsigned char)id.data[i];
        unsigned char before = i > 0 ? (unsigned char)id.data[i - 1] : 0;
        /* In valid UTF-8 a C1 control, U+0080 to U+009F, is the byte C2 and one of 80 to 9F. */
        if (byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0))
            return false;
    }
    return true;
}
