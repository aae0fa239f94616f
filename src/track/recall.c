#include "recall.h"

#include <stddef.h>
#include <string.h>

/* Nobody's node: edges from it lead to the first node of each key. */
#define START 0
/* Of an edge that is taken whatever else lies there.  No address of code, and no place, is odd. */
#define ANYTHING 1
#define PROBES 16

static uint32_t edge_hash(uint32_t from, uintptr_t value)
{
    uint64_t mixed = (value ^ (uint64_t)from << 40) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 40) & (GOS_RECALL_EDGES - 1);
}

/* 0: there is no such edge. */
static uint32_t follow(const struct gos_recall *recall, uint32_t from, uintptr_t value)
{
    uint32_t at = edge_hash(from, value);
    for (uint32_t i = 0; i < PROBES; i++) {
        const struct gos_recall_edge *edge = &recall->edges[(at + i) & (GOS_RECALL_EDGES - 1)];
        if (edge->to == 0)
            return 0;
        if (edge->from == from && edge->value == value)
            return edge->to;
    }
    return 0;
}

static bool connect(struct gos_recall *recall, uint32_t from, uintptr_t value, uint32_t to)
{
    uint32_t at = edge_hash(from, value);
    for (uint32_t i = 0; i < PROBES; i++) {
        struct gos_recall_edge *edge = &recall->edges[(at + i) & (GOS_RECALL_EDGES - 1)];
        if (edge->to)
            continue;
        *edge = (struct gos_recall_edge){.value = value, .from = from, .to = to};
        recall->edge_count++;
        return true;
    }
    return false;
}

/* --- recognising ----------------------------------------------------------------------------- */

/* Keys that differ in their caller alone part at the node behind. */
static uintptr_t start_value(const struct gos_recall_key *key)
{
    return key->slot ^ (uintptr_t)key->depth << 56;
}

static inline bool is_first_of(const struct gos_recall_node *node, const struct gos_recall_key *key)
{
    return node->value == key->slot && (uint32_t)node->offset == key->depth &&
           node->kind == GOS_RECALL_FIRST;
}

/* NULL: nothing is known of that key. */
static inline const struct gos_recall_node *first_node(struct gos_recall *recall,
                                                       const struct gos_recall_key *key)
{
    if (!is_first_of(&recall->nodes[recall->last_first], key))
        recall->last_first = follow(recall, START, start_value(key));
    const struct gos_recall_node *node = &recall->nodes[recall->last_first];
    return is_first_of(node, key) ? node : NULL;
}

/* The node that goes on instead of this one, at whose place that value lies; NULL: none is known.
 */
static __attribute__((noinline)) const struct gos_recall_node *
turn_off(const struct gos_recall *recall, const struct gos_recall_node *node, uintptr_t value)
{
    uint32_t at = (uint32_t)(node - recall->nodes);
    uint32_t to = follow(recall, at, value);
    if (!to)
        to = follow(recall, at, ANYTHING);
    return to ? &recall->nodes[to] : NULL;
}

__attribute__((no_sanitize("address"))) static inline uintptr_t
value_at(const struct gos_recall_key *key, const struct gos_recall_node *node)
{
    uintptr_t value;
    memcpy(&value, (const char *)key->slot + node->offset, sizeof value);
    return value;
}

static inline bool lies_there(const struct gos_recall_key *key, const struct gos_recall_node *node)
{
    return value_at(key, node) == node->value;
}

/* Four at a time: a loop of one look is as fast as the place where it happens to begin lets it be.
 */
static inline const struct gos_recall_node *skip_what_lies_there(const struct gos_recall_key *key,
                                                                 const struct gos_recall_node *node)
{
    while (lies_there(key, node) && lies_there(key, ++node) && lies_there(key, ++node) &&
           lies_there(key, ++node))
        node++;
    return node;
}

/*
 * From the newest outward: a place is read only when all frames inside it are
 * as remembered.  The end has a value that lies nowhere, so that it needs no
 * look of its own.
 */
static const struct gos_recall_node *find_end(struct gos_recall *recall,
                                              const struct gos_recall_key *key)
{
    const struct gos_recall_node *node = first_node(recall, key);
    if (!node)
        return NULL;
    for (node++;;) {
        node = skip_what_lies_there(key, node);
        if (node->kind == GOS_RECALL_END)
            return node;
        node = turn_off(recall, node, value_at(key, node));
        if (!node)
            return NULL;
    }
}

struct gos_recall_stack *gos_recall_find(struct gos_recall *recall,
                                         const struct gos_recall_key *key)
{
    const struct gos_recall_node *end = find_end(recall, key);
    return end ? &recall->stacks[end->value] : NULL;
}

uint32_t gos_recall_frames(struct gos_recall *recall, const struct gos_recall_key *key,
                           uintptr_t *addresses)
{
    const struct gos_recall_node *node = first_node(recall, key);
    uint32_t count = 0;
    if (!node)
        return 0;
    for (node++; node && node->kind != GOS_RECALL_END;) {
        uintptr_t value = value_at(key, node);
        if (value != node->value) {
            node = turn_off(recall, node, value);
            continue;
        }
        if (node->kind == GOS_RECALL_FRAME && count < key->depth)
            addresses[count++] = value;
        node++;
    }
    return count;
}

/* --- learning -------------------------------------------------------------------------------- */

/* Was it met before?  Now it was. */
static bool meet(struct gos_recall *recall, uint64_t mark)
{
    uint64_t *set = recall->seen[mark >> 20 & (GOS_RECALL_SEEN_SETS - 1)];
    for (uint32_t way = 0; way < GOS_RECALL_SEEN_WAYS; way++)
        if (set[way] == mark)
            return true;
    set[recall->next_way++ & (GOS_RECALL_SEEN_WAYS - 1)] = mark;
    return false;
}

/*
 * Only a stack's second sighting is worth the slow walk that finds its slots;
 * most stacks of a program that starts up are never seen again.
 */
bool gos_recall_note(struct gos_recall *recall, const struct gos_recall_key *key, uint64_t hash)
{
    if (!meet(recall, hash ^ key->slot * UINT64_C(0xc2b2ae3d27d4eb4f)))
        return false;
    recall->lesson.key = *key;
    recall->lesson.hash = hash;
    recall->lesson.check_count = 0;
    return true;
}

bool gos_recall_expect(struct gos_recall_lesson *lesson, uintptr_t place, uintptr_t value,
                       enum gos_recall_kind kind)
{
    intptr_t offset = (intptr_t)(place - lesson->key.slot);
    if (lesson->check_count == GOS_RECALL_CHECKS || offset < INT32_MIN || offset > INT32_MAX)
        return false;
    lesson->checks[lesson->check_count++] =
        (struct gos_recall_node){.value = value, .offset = (int32_t)offset, .kind = kind};
    return true;
}

void gos_recall_forget(struct gos_recall *recall)
{
    memset(recall->edges, 0, sizeof recall->edges);
    recall->last_first = START;
    recall->node_count = 0;
    recall->edge_count = 0;
    recall->stack_count = 0;
}

static void make_room(struct gos_recall *recall)
{
    bool is_full = recall->node_count + GOS_RECALL_CHECKS + 2 > GOS_RECALL_NODES ||
                   recall->edge_count > GOS_RECALL_EDGES / 4 * 3 ||
                   recall->stack_count == GOS_RECALL_STACKS;
    if (is_full)
        gos_recall_forget(recall);
    if (recall->node_count == 0)
        recall->node_count = 1; /* START */
}

static void add_node(struct gos_recall *recall, struct gos_recall_node node)
{
    recall->nodes[recall->node_count++] = node;
}

/* The lesson's checks from that one on, and the stack that ends with them; room was made. */
static void add_rest(struct gos_recall *recall, uint32_t check)
{
    const struct gos_recall_lesson *lesson = &recall->lesson;
    for (; check < lesson->check_count; check++)
        add_node(recall, lesson->checks[check]);
    add_node(recall, (struct gos_recall_node){recall->stack_count, 0, GOS_RECALL_END});
    recall->stacks[recall->stack_count++] = (struct gos_recall_stack){.hash = lesson->hash};
}

static void begin_key(struct gos_recall *recall)
{
    const struct gos_recall_key *key = &recall->lesson.key;
    if (!connect(recall, START, start_value(key), recall->node_count))
        return;
    add_node(recall, (struct gos_recall_node){key->slot, (int32_t)key->depth, GOS_RECALL_FIRST});
    add_rest(recall, 0);
}

/*
 * As far as what is known agrees, the lesson says nothing new; what it expects
 * from there on goes to where an edge leads from the last node compared.  Where
 * the known stack has something compared that this one has not (a register
 * happened to point into a frame), the edge is taken if nothing else fits.
 */
static void branch_off(struct gos_recall *recall, const struct gos_recall_node *node)
{
    const struct gos_recall_lesson *lesson = &recall->lesson;
    uint32_t check = 0;
    while (check < lesson->check_count && node->kind != GOS_RECALL_END) {
        const struct gos_recall_node *wanted = &lesson->checks[check];
        bool same_place = node->offset == wanted->offset;
        if (same_place && node->value == wanted->value) {
            node++;
            check++;
            continue;
        }
        uint32_t at = (uint32_t)(node - recall->nodes);
        uintptr_t value = same_place ? wanted->value : ANYTHING;
        uint32_t to = follow(recall, at, value);
        if (!to && connect(recall, at, value, recall->node_count))
            add_rest(recall, check);
        if (!to)
            return;
        node = &recall->nodes[to];
    }
}

void gos_recall_keep(struct gos_recall *recall)
{
    make_room(recall);
    const struct gos_recall_node *first = first_node(recall, &recall->lesson.key);
    if (first)
        branch_off(recall, first + 1);
    else
        begin_key(recall);
}
