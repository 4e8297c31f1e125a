/* Gets from a pointer to an embedded field to the struct that holds it. */
#ifndef ROLLCALL_BASE_CONTAINER_H
#define ROLLCALL_BASE_CONTAINER_H

#include <stddef.h>

#define CONTAINER_OF(pointer, type, field) ((type *)((char *)(pointer)-offsetof(type, field)))

#endif
