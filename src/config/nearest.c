#include "config/nearest.h"

static size_t nearest_fewer_edits(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment over three rolling rows. */
static size_t nearest_edits(struct slice a, struct slice b)
{
    size_t rows[3][NEAREST_NAME_MAX + 1];
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replaced = above[j - 1] + (a.data[i - 1] != b.data[j - 1]);
            row[j] = nearest_fewer_edits(replaced, nearest_fewer_edits(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                row[j] = nearest_fewer_edits(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a.len % 3][b.len];
}

/* Returns whether `name` is the last part or parts of the dotted `candidate`. */
static bool nearest_is_tail(struct slice name, struct slice candidate)
{
    if (name.len == 0 || candidate.len <= name.len)
        return false;
    size_t before = candidate.len - name.len;
    return candidate.data[before - 1] == '.' && slice_equal(slice_after(candidate, before), name);
}

struct nearest nearest_to(struct slice wanted)
{
    /* Up to a third of the letters may be wrong; beyond that a suggestion does not help. */
    return (struct nearest){.wanted = wanted, .best_edits = wanted.len / 3 + 1};
}

void nearest_offer(struct nearest *nearest, struct slice candidate)
{
    if (nearest->wanted.len > NEAREST_NAME_MAX || candidate.len > NEAREST_NAME_MAX)
        return;
    size_t edits =
        nearest_is_tail(nearest->wanted, candidate) ? 1 : nearest_edits(nearest->wanted, candidate);
    if (edits < nearest->best_edits) {
        nearest->best = candidate;
        nearest->best_edits = edits;
    }
}
