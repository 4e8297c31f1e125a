/* Files that the build embeds; tools/embed-assets writes the table, which ends with a NULL path. */
#ifndef ROLLCALL_API_ASSETS_H
#define ROLLCALL_API_ASSETS_H

#include <stddef.h>

struct asset {
    const char *path; /* of the request, such as "/app.js" */
    const char *content_type;
    const unsigned char *bytes;
    size_t len;
};

extern const struct asset ASSETS[];

#endif
