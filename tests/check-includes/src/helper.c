#include "base/slice.h" /* wrong */
