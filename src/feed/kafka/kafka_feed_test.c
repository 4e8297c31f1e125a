/* The feed's conformance suite on a real Kafka, whose address is in TEST_KAFKA. */
#include "support/kafka_backend.h"

#include <stdio.h>
#include <stdlib.h>

static struct feed_backend *make_kafka_backend(void)
{
    return kafka_backend_make(NULL);
}

int main(void)
{
    if (!getenv("TEST_KAFKA")) {
        puts("1..0 # SKIP needs a broker: TEST_KAFKA=HOST:PORT (make test-cloud starts one)");
        return 0;
    }
    return feed_suite_run(make_kafka_backend, kafka_backend_free);
}
