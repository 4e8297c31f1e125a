/* Gets from a pointer to an embedded member to the struct that holds it. */
#ifndef ROLLCALL_BASE_CONTAINER_H
#define ROLLCALL_BASE_CONTAINER_H

#include <stddef.h>

#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
