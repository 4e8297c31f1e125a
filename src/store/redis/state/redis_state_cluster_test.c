/* The state store on a Redis cluster. */
#include "support/redis_state_backend.h"

int main(void)
{
    struct redis_fleet fleet;
    redis_fleet_open(&fleet, true);
    int failed = redis_state_backend_suite(&fleet, "a Redis cluster");
    redis_fleet_close(&fleet);
    return failed;
}
