/* The state store on a single Redis server. */
#include "support/redis_state_backend.h"

int main(void)
{
    struct redis_fleet fleet;
    redis_fleet_open(&fleet, false);
    int failed = redis_state_backend_suite(&fleet, "Redis");
    redis_fleet_close(&fleet);
    return failed;
}
