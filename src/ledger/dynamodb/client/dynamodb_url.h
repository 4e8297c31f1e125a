/* dynamodb://REGION[?endpoint=URL&prefix=NAME&ca=FILE] taken apart. */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_URL_H
#define ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_URL_H

#include <stdbool.h>

enum {
    DYNAMODB_REGION_MAX = 64,
    DYNAMODB_ENDPOINT_MAX = 512,
    DYNAMODB_PREFIX_MAX = 128,
    DYNAMODB_URL_ERROR_MAX = 256
};

#define DYNAMODB_PREFIX_DEFAULT "rollcall-"

struct dynamodb_url {
    char region[DYNAMODB_REGION_MAX];
    char endpoint[DYNAMODB_ENDPOINT_MAX]; /* the region's own without one */
    char prefix[DYNAMODB_PREFIX_MAX];     /* of the tables' names */
    char ca_file[DYNAMODB_ENDPOINT_MAX];  /* empty: the system's certificates */
};

/* Returns false, with what is wrong and what is expected in `error`. */
bool dynamodb_url_parse(const char *text, struct dynamodb_url *url,
                        char error[DYNAMODB_URL_ERROR_MAX]);

#endif
