/* An emulated volume for nbdkit: real copies on the files of its disks, modelled latency, caps and network.
 *
 * One process serves a volume to one node. What it knows is in the layout file, written by Python (layout_file.py
 * mirrors the structs marked SHARED) and shared by the processes of all nodes: members (a disk of a node: its file,
 * limits and latency), nodes, and tiers. A tier is a row of bands; a band holds a stretch of the volume, striped over
 * columns, in rows: each row has it whole, a copy of a mirror, or data and parity (real XOR) of the disks of one node.
 * Where a row's column lies is a place: a slab on a member.
 *
 *   write   to every place; ends with the slowest, each with its hop over the network
 *   read    from one row, of the own node with the probability `local_share`
 *
 * A place whose member or node is down is skipped and marked dirty: nothing is read from it until the repair has copied
 * it back, through the same limits. What no clean place is left of gives EIO.
 *
 * A volume with two tiers (mirror-accelerated parity) maps regions of 1 MiB: written to the mirror while it has room,
 * also when they were in parity; else in place in parity; moved to parity, first in first out, when the mirror is full
 * beyond `rotate_at`. Reads move nothing. (MicrosoftDocs/windowsserverdocs, mirror-accelerated-parity.md)
 */
#include "played.h"

#include <sched.h>
#include <signal.h>

#define LAYOUT_MAGIC 0x32304c4f564b5344 /* "DSKVOL02" */
#define NODES 8
#define MEMBERS 128
#define TIERS 2
#define PLACES 32 /* of a band: one bit each in its word of marks */
#define LOCKS 4096
#define PATH_BYTES 256
#define REGION (1 << 20)
#define BLOCK 4096
#define BLOCKS (REGION / BLOCK)
#define LONGEST (1 << 20) /* interleave, and so chunk, at most */
#define SHORT_NS (NS / 50)

/* ---- what is shared with Python ------------------------------------------------------------------------------- */

/* SHARED. A way to a node. */
struct hop {
  double mean_ns, sigma;
};

/* SHARED. Paths are empty where there is no limit. */
struct node {
  _Atomic int64_t up;
  int64_t seconds;
  _Atomic int64_t wire_out, wire_in;              /* bytes */
  _Atomic int64_t count[2], bytes[2], redirected[2]; /* of its clients: reads, writes; bytes by way of the owner */
  struct hop hop[NODES];
  char vm[PATH_BYTES], nic_out[PATH_BYTES], nic_in[PATH_BYTES];
  double second_log[SECONDS];
};

/* SHARED. */
struct member {
  _Atomic int64_t up, wiped; /* wiped: another disk came back in its place */
  int64_t node;
  double log_factor;
  struct latency latency[2]; /* read, write */
  _Atomic int64_t count[2], bytes[2];
  char backing[PATH_BYTES], limits[PATH_BYTES];
};

/* SHARED. Where a column of a row lies: in the member's file at slab * slab_bytes. */
struct place {
  int32_t member;
  uint32_t slab;
};

/* SHARED. The columns of a row of a parity tier are data and, the last one, their parity. */
enum { MIRROR, PARITY };
struct tier {
  int64_t kind, rows, columns, bands, first_band, first_place;
};

/* SHARED. A region of a volume with two tiers; `at` is its place in a tier, plus 1, or 0. Blocks that are not valid in
 * the mirror are in parity, if it is there, else they are zeros that were never written. */
struct region {
  _Atomic int32_t at[TIERS];
  _Atomic uint64_t valid[BLOCKS / 64];
};

/* SHARED. What was done: reads by the node that answered, regions reallocated, and bytes of all else. */
enum locked { A_PIECE, A_REGION, LOCKED };
enum { LOCAL_READS, REMOTE_READS, REALLOCATED, IN_PLACE, ROTATED, REPAIR_FOUND, REPAIR_DONE, DONE };
struct layout {
  uint64_t magic;
  int64_t size_bytes, slab_bytes, interleave, nodes, members, tiers;
  int64_t places_at, marks_at, regions_at, used_at, queue_at, bytes; /* in this file, whose length is `bytes` */
  _Atomic int64_t online, owner, changes;                            /* `changes`: of what is up */
  double local_share, rotate_at;
  int64_t software_ns, repair_depth;
  _Atomic int64_t keeper; /* process that repairs and rotates */
  _Atomic int64_t used[TIERS], next[TIERS], queue_head, queue_tail;
  _Atomic int64_t done[DONE];
  _Atomic int32_t book, reserved; /* as a lock: of what regions are used */
  _Atomic int32_t lock[LOCKED][LOCKS]; /* the process that holds it, or 0 */
  struct tier tier[TIERS];
  struct node node[NODES];
  struct member member[MEMBERS];
};

/* ---- state of this process ------------------------------------------------------------------------------------ */

static char *layout_path, *model_path;
static int64_t own_node;
static int32_t own_pid;
static struct layout *layout;
static const struct place *places;
static _Atomic uint64_t *marks; /* a band: low half dirty, high half written or missed since its repair began */
static struct region *regions;
static _Atomic uint8_t *region_used; /* of the mirror, then of the parity tier */
static _Atomic int64_t *queue;       /* regions in the mirror, the oldest first */
static int64_t tier_regions[TIERS];
static struct backing files[MEMBERS];
static struct limits *member_limits[MEMBERS], *vm_limits[NODES], *nic_out[NODES], *nic_in[NODES];
static _Atomic bool stopping;
static pthread_t keeper_thread;
static bool keeper_runs;

static struct place
place_of (const struct tier *t, int64_t band, int64_t row, int64_t column)
{
  return places[t->first_place + (band * t->rows + row) * t->columns + column];
}

static uint64_t
bit_of (const struct tier *t, int64_t row, int64_t column)
{
  return UINT64_C (1) << (row * t->columns + column);
}

static _Atomic uint64_t *
marks_of (const struct tier *t, int64_t band)
{
  return &marks[t->first_band + band];
}

static bool
is_up (struct place p)
{
  const struct member *m = &layout->member[p.member];
  return atomic_load (&m->up) && atomic_load (&layout->node[m->node].up);
}

static bool
is_clean (const struct tier *t, int64_t band, int64_t row, int64_t column)
{
  const struct place p = place_of (t, band, row, column);
  return is_up (p) && !atomic_load (&layout->member[p.member].wiped)
         && !(atomic_load (marks_of (t, band)) & bit_of (t, row, column));
}

static void
mark (const struct tier *t, int64_t band, int64_t row, int64_t column)
{
  const uint64_t bit = bit_of (t, row, column);
  atomic_fetch_or (marks_of (t, band), bit | bit << PLACES);
}

static int64_t
data_columns (const struct tier *t)
{
  return t->kind == PARITY ? t->columns - 1 : t->columns;
}

static int64_t
node_of (const struct tier *t, int64_t band, int64_t row, int64_t column)
{
  return layout->member[place_of (t, band, row, column).member].node;
}

/* ---- locks between processes: held while data are copied, never while time passes --------------------------------- */

/* Taken in this order: a region, then pieces of it one by one, or the book of what is used. */

static _Atomic int32_t *
lock_of (enum locked what, uint64_t number)
{
  return &layout->lock[what][(number * UINT64_C (0x9e3779b97f4a7c15) >> 32) % LOCKS];
}

static void
take (_Atomic int32_t *lock)
{
  for (int tries = 1;; ++tries) {
    int32_t holder = 0;
    if (atomic_compare_exchange_strong (lock, &holder, own_pid))
      return;
    if (tries % 64 == 0)
      sched_yield ();
    if (tries % 65536 == 0 && kill (holder, 0) == -1 && errno == ESRCH) /* it was killed: nothing is half done that */
      atomic_compare_exchange_strong (lock, &holder, 0);                /* was acknowledged */
  }
}

static void
give_back (_Atomic int32_t *lock)
{
  atomic_store (lock, 0);
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* An I/O of the volume as time passes: it came at `now`; what it has done so far ends at `end`, and would have taken
 * `drawn` had nothing been limited. `from` is the node whose copies are local. */
struct course {
  int64_t now, end, drawn;
  int64_t from;
  double noise;
  bool client; /* asked for by a client, not by a repair or a rotation */
};

static void
join (struct course *whole, const struct course *part)
{
  whole->end = later (whole->end, part->end);
  whole->drawn = later (whole->drawn, part->drawn);
}

static double
noise_at (int64_t n, int64_t now)
{
  const struct node *node = &layout->node[n];
  return node->second_log[later (0, (now - model->epoch_ns) / NS) % node->seconds];
}

static int64_t
hop_ns (int64_t from, int64_t to)
{
  const struct hop *h = &layout->node[from].hop[to];
  const struct latency l = { .mean_ns = h->mean_ns, .sigma = h->sigma };
  return from == to ? 0 : draw_ns (&l, 0);
}

/* Carry bytes from a node to another; return when they may go. */
static int64_t
carry (int64_t from, int64_t to, uint32_t bytes, int64_t now)
{
  if (from == to)
    return now;
  atomic_fetch_add_explicit (&layout->node[from].wire_out, bytes, memory_order_relaxed);
  atomic_fetch_add_explicit (&layout->node[to].wire_in, bytes, memory_order_relaxed);
  return later (admit (nic_out[from], bytes, now), admit (nic_in[to], bytes, now));
}

/* Let a member do an I/O for `c`, which begins not before what `c` has done so far. */
static void
do_io (struct course *c, int op, struct place p, uint32_t bytes)
{
  struct member *m = &layout->member[p.member];
  const bool reads = op == READ;
  int64_t at = later (admit (member_limits[p.member], bytes, c->now), admit (vm_limits[m->node], bytes, c->now));
  at = later (at, carry (reads ? m->node : c->from, reads ? c->from : m->node, bytes, c->now));
  const double noise = c->noise + m->log_factor + noise_at (m->node, c->now);
  const int64_t drawn = draw_ns (&m->latency[op], noise) + hop_ns (c->from, m->node);
  c->end = later (at, c->end) + drawn;
  c->drawn += drawn;
  atomic_fetch_add_explicit (&m->count[op], 1, memory_order_relaxed);
  atomic_fetch_add_explicit (&m->bytes[op], bytes, memory_order_relaxed);
}

/* Do it beside others that begin where `start` is; `whole` ends with the last of them. Nothing without a course. */
static void
do_beside (struct course *whole, const struct course *start, int op, struct place p, uint32_t bytes)
{
  if (!whole)
    return;
  struct course part = *start;
  do_io (&part, op, p, bytes);
  join (whole, &part);
}

/* ---- pieces: what lies in one column of one band ------------------------------------------------------------------- */

struct piece {
  const struct tier *t;
  int64_t band, stripe, column;
  uint64_t offset; /* in the slab */
  uint32_t count;
};

static uint64_t
stripe_bytes (const struct tier *t)
{
  return (uint64_t) (layout->interleave * data_columns (t));
}

static struct piece
first_piece (const struct tier *t, uint64_t offset, uint32_t count)
{
  const uint64_t interleave = (uint64_t) layout->interleave, stripe = stripe_bytes (t);
  const uint64_t band = (uint64_t) (layout->slab_bytes * data_columns (t)), in_band = offset % band;
  const uint64_t in_chunk = in_band % interleave, left = interleave - in_chunk;
  struct piece p = { .t = t, .band = (int64_t) (offset / band), .stripe = (int64_t) (in_band / stripe) };
  p.column = (int64_t) (in_band % stripe / interleave);
  p.offset = in_band / stripe * interleave + in_chunk;
  p.count = count < left ? count : (uint32_t) left;
  return p;
}

static _Atomic int32_t *
lock_piece (const struct piece *p)
{
  const int64_t column = p->t->kind == PARITY ? 0 : p->column;
  _Atomic int32_t *lock = lock_of (A_PIECE, ((uint64_t) (p->t->first_band + p->band) << 16 | (uint64_t) p->stripe) * PLACES + (uint64_t) column);
  take (lock);
  return lock;
}

static int
get (struct place p, char *buf, uint32_t count, uint64_t offset)
{
  return fetch (&files[p.member], buf, count, (uint64_t) p.slab * (uint64_t) layout->slab_bytes + offset);
}

static int
put (struct place p, const char *buf, uint32_t count, uint64_t offset)
{
  return store (&files[p.member], buf, count, (uint64_t) p.slab * (uint64_t) layout->slab_bytes + offset);
}

static void
xor_into (char *restrict sum, const char *restrict with, uint32_t count)
{
  for (uint32_t i = 0; i < count; ++i)
    sum[i] ^= with[i];
}

static char *
scratch (int number) /* a chunk of memory, of each thread its own */
{
  static __thread char *memory[4];
  if (!memory[number])
    memory[number] = malloc (LONGEST);
  return memory[number];
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* Whether a row can tell a column though its place is not clean: from all its others. */
static bool
can_rebuild (const struct piece *p, int64_t row, int64_t column)
{
  if (p->t->kind != PARITY)
    return false;
  for (int64_t other = 0; other < p->t->columns; ++other)
    if (other != column && !is_clean (p->t, p->band, row, other))
      return false;
  return true;
}

static int
rebuild (const struct piece *p, int64_t row, int64_t column, char *buf, struct course *c)
{
  char *other_data = scratch (0);
  const struct course start = c ? *c : (struct course) { 0 };
  memset (buf, 0, p->count);
  for (int64_t other = 0; other < p->t->columns; ++other) {
    if (other == column)
      continue;
    const struct place place = place_of (p->t, p->band, row, other);
    if (get (place, other_data, p->count, p->offset) == -1)
      return -1;
    xor_into (buf, other_data, p->count);
    do_beside (c, &start, READ, place, p->count);
  }
  return 0;
}

/* Choose a row among those on the node `from`, or among the others: one with a clean place, else (`rebuilt`) one that
 * can rebuild it. -1: there is none. */
static int64_t
row_of (const struct piece *p, int64_t from, bool local, bool rebuilt)
{
  int64_t chosen = -1, candidates = 0;
  for (int64_t row = 0; row < p->t->rows; ++row) {
    if ((node_of (p->t, p->band, row, p->column) == from) != local)
      continue;
    if (rebuilt ? !can_rebuild (p, row, p->column) : !is_clean (p->t, p->band, row, p->column))
      continue;
    if (next_random () % (uint64_t) ++candidates == 0)
      chosen = row;
  }
  return chosen;
}

static int
read_piece (const struct piece *p, char *buf, struct course *c)
{
  const int64_t from = c ? c->from : own_node;
  const bool local = uniform () < layout->local_share;
  for (int rebuilt = 0; rebuilt <= 1; ++rebuilt)
    for (int turn = 0; turn <= 1; ++turn) {
      const int64_t row = row_of (p, from, local != turn, rebuilt);
      if (row < 0)
        continue;
      if (c && c->client)
        atomic_fetch_add_explicit (&layout->done[local != turn ? LOCAL_READS : REMOTE_READS], 1, memory_order_relaxed);
      if (rebuilt)
        return rebuild (p, row, p->column, buf, c);
      const struct place place = place_of (p->t, p->band, row, p->column);
      if (c)
        do_io (c, READ, place, p->count);
      return get (place, buf, p->count, p->offset);
    }
  errno = EIO;
  return -1;
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

static int
write_mirror (const struct piece *p, const char *buf, struct course *c)
{
  const struct course start = c ? *c : (struct course) { 0 };
  bool kept = false;
  for (int64_t row = 0; row < p->t->rows; ++row) {
    const struct place place = place_of (p->t, p->band, row, p->column);
    if (!is_up (place)) {
      mark (p->t, p->band, row, p->column);
      continue;
    }
    if (put (place, buf, p->count, p->offset) == -1)
      return -1;
    kept |= is_clean (p->t, p->band, row, p->column);
    do_beside (c, &start, WRITE, place, p->count);
  }
  errno = EIO;
  return kept ? 0 : -1;
}

/* Write a piece of a parity row in place: old data and old parity are read, both are written. Return whether the row
 * has it now. */
static int
write_in_row (const struct piece *p, int64_t row, const char *buf, struct course *c, bool *kept)
{
  const struct tier *t = p->t;
  const struct place data = place_of (t, p->band, row, p->column), parity = place_of (t, p->band, row, t->columns - 1);
  const bool data_clean = is_clean (t, p->band, row, p->column), data_up = is_up (data);
  const bool parity_clean = is_clean (t, p->band, row, t->columns - 1);
  char *old = scratch (1), *sum = scratch (2);
  struct course start = c ? *c : (struct course) { 0 };
  bool updated = false;
  if (parity_clean && (data_clean || can_rebuild (p, row, p->column))) {
    const struct course before = start;
    if (data_clean ? get (data, old, p->count, p->offset) : rebuild (p, row, p->column, old, c ? &start : NULL))
      return -1;
    if (get (parity, sum, p->count, p->offset) == -1)
      return -1;
    if (c && data_clean) {
      struct course reads = before;
      do_beside (&reads, &before, READ, data, p->count);
      do_beside (&reads, &before, READ, parity, p->count);
      start = reads;
    }
    xor_into (sum, old, p->count);
    xor_into (sum, buf, p->count);
    if (put (parity, sum, p->count, p->offset) == -1)
      return -1;
    do_beside (c, &start, WRITE, parity, p->count);
    updated = true;
  } else
    mark (t, p->band, row, t->columns - 1);
  if (data_up) {
    if (put (data, buf, p->count, p->offset) == -1)
      return -1;
    do_beside (c, &start, WRITE, data, p->count);
  } else
    mark (t, p->band, row, p->column);
  *kept |= data_clean || updated;
  return 0;
}

static int
write_in_place (const struct piece *p, const char *buf, struct course *c)
{
  const struct course start = c ? *c : (struct course) { 0 };
  bool kept = false;
  for (int64_t row = 0; row < p->t->rows; ++row) {
    struct course part = start;
    if (write_in_row (p, row, buf, c ? &part : NULL, &kept) == -1)
      return -1;
    if (c)
      join (c, &part);
  }
  errno = EIO;
  return kept ? 0 : -1;
}

/* Write a whole stripe: nothing need be read for its parity. */
static int
write_stripe (const struct piece *p, const char *buf, struct course *c)
{
  const struct course start = c ? *c : (struct course) { 0 };
  const uint32_t chunk = (uint32_t) layout->interleave;
  char *sum = scratch (1);
  memset (sum, 0, chunk);
  for (int64_t column = 0; column < data_columns (p->t); ++column)
    xor_into (sum, buf + column * chunk, chunk);
  bool kept = false;
  for (int64_t row = 0; row < p->t->rows; ++row) {
    int64_t lacking = 0;
    for (int64_t column = 0; column < p->t->columns; ++column) {
      const struct place place = place_of (p->t, p->band, row, column);
      lacking += !is_clean (p->t, p->band, row, column);
      if (!is_up (place)) {
        mark (p->t, p->band, row, column);
        continue;
      }
      const char *from = column == p->t->columns - 1 ? sum : buf + column * chunk;
      if (put (place, from, chunk, p->offset) == -1)
        return -1;
      do_beside (c, &start, WRITE, place, chunk);
    }
    kept |= lacking <= 1;
  }
  errno = EIO;
  return kept ? 0 : -1;
}

/* Read or write a stretch of a tier; its pieces are done beside one another. */
static int
transfer (const struct tier *t, int op, char *buf, uint32_t count, uint64_t offset, struct course *c)
{
  const struct course start = c ? *c : (struct course) { 0 };
  while (count > 0) {
    struct piece p = first_piece (t, offset, count);
    struct course part = start;
    const bool whole = t->kind == PARITY && op == WRITE && p.column == 0 && p.offset % (uint64_t) layout->interleave == 0
                       && count >= stripe_bytes (t);
    if (whole)
      p.count = (uint32_t) stripe_bytes (t);
    _Atomic int32_t *lock = lock_piece (&p);
    int failed;
    if (op == READ)
      failed = read_piece (&p, buf, c ? &part : NULL);
    else if (whole)
      failed = write_stripe (&p, buf, c ? &part : NULL);
    else if (t->kind == PARITY)
      failed = write_in_place (&p, buf, c ? &part : NULL);
    else
      failed = write_mirror (&p, buf, c ? &part : NULL);
    give_back (lock);
    if (failed)
      return -1;
    if (c)
      join (c, &part);
    buf += p.count;
    offset += p.count;
    count -= p.count;
  }
  return 0;
}

/* ---- regions of a volume with two tiers ----------------------------------------------------------------------------- */

static _Atomic uint8_t *
used_of (int tier)
{
  return region_used + (tier ? tier_regions[MIRROR] : 0);
}

/* Take a free region of a tier; 0: there is none, else its number plus 1. */
static int32_t
take_region (int tier)
{
  int32_t taken = 0;
  take (&layout->book);
  for (int64_t i = 0; i < tier_regions[tier] && !taken && layout->used[tier] < tier_regions[tier]; ++i) {
    const int64_t at = layout->next[tier]++ % tier_regions[tier];
    if (!used_of (tier)[at]) {
      used_of (tier)[at] = 1;
      ++layout->used[tier];
      taken = (int32_t) at + 1;
    }
  }
  give_back (&layout->book);
  return taken;
}

static void
free_region (struct region *r, int tier)
{
  take (&layout->book);
  used_of (tier)[r->at[tier] - 1] = 0;
  --layout->used[tier];
  give_back (&layout->book);
  r->at[tier] = 0;
}

static int64_t
queue_length (void)
{
  return layout->size_bytes / REGION + 1; /* a region is in it once */
}

static bool
valid_block (const struct region *r, uint32_t block)
{
  return r->valid[block / 64] >> (block % 64) & 1;
}

/* How many of the bytes from `at` on are alike valid in the mirror, or not, up to `count`. */
static uint32_t
run_of (const struct region *r, uint32_t at, uint32_t count)
{
  const bool valid = valid_block (r, at / BLOCK);
  uint32_t end = (at / BLOCK + 1) * BLOCK;
  while (end < at + count && valid_block (r, end / BLOCK) == valid)
    end += BLOCK;
  return end - at < count ? end - at : count;
}

static int
in_tier (int tier, const struct region *r, int op, char *buf, uint32_t count, uint32_t at, struct course *c)
{
  const uint64_t offset = (uint64_t) (r->at[tier] - 1) * REGION + at;
  return transfer (&layout->tier[tier], op, buf, count, offset, c);
}

static int
read_region (const struct region *r, char *buf, uint32_t count, uint32_t at, struct course *c)
{
  const struct course start = c ? *c : (struct course) { 0 };
  while (count > 0) {
    const uint32_t n = run_of (r, at, count);
    const bool valid = valid_block (r, at / BLOCK);
    struct course part = start;
    if (!valid && !r->at[PARITY])
      memset (buf, 0, n); /* never written: read without any I/O */
    else if (in_tier (valid ? MIRROR : PARITY, r, READ, buf, n, at, c ? &part : NULL) == -1)
      return -1;
    if (c)
      join (c, &part);
    buf += n;
    at += n;
    count -= n;
  }
  return 0;
}

/* Bring the rest of a block that is written in part into the mirror. */
static int
complete_block (struct region *r, uint32_t block)
{
  char data[BLOCK];
  if (valid_block (r, block))
    return 0;
  return read_region (r, data, BLOCK, block * BLOCK, NULL)
                 || in_tier (MIRROR, r, WRITE, data, BLOCK, block * BLOCK, NULL)
             ? -1
             : 0;
}

static int
write_to_mirror (struct region *r, char *buf, uint32_t count, uint32_t at, struct course *c)
{
  const uint32_t first = at / BLOCK, last = (at + count - 1) / BLOCK;
  if ((at % BLOCK && complete_block (r, first)) || ((at + count) % BLOCK && complete_block (r, last)))
    return -1;
  if (in_tier (MIRROR, r, WRITE, buf, count, at, c) == -1)
    return -1;
  bool all = true;
  for (uint32_t b = first; b <= last; ++b)
    r->valid[b / 64] |= UINT64_C (1) << (b % 64);
  for (int i = 0; i < BLOCKS / 64; ++i)
    all &= r->valid[i] == UINT64_MAX;
  if (all && r->at[PARITY])
    free_region (r, PARITY);
  return 0;
}

/* Find a place for what is written to a region that is not in the mirror. */
static bool
find_place (struct region *r, int64_t number)
{
  const int32_t mirror = take_region (MIRROR);
  if (mirror) {
    if (r->at[PARITY])
      atomic_fetch_add (&layout->done[REALLOCATED], 1);
    r->at[MIRROR] = mirror;
    queue[atomic_fetch_add (&layout->queue_tail, 1) % queue_length ()] = number + 1;
  } else if (!r->at[PARITY])
    r->at[PARITY] = take_region (PARITY);
  return r->at[MIRROR] || r->at[PARITY];
}

/* Move the oldest region of the mirror to parity; 1: moved, 0: there is none, or no room. */
static int
rotate (struct course *c)
{
  static __thread char *data;
  const int64_t head = atomic_load (&layout->queue_head);
  const int64_t number = head < layout->queue_tail ? atomic_load (&queue[head % queue_length ()]) - 1 : -1;
  if (number < 0 || (!data && !(data = malloc (REGION))))
    return 0;
  struct region *r = &regions[number];
  _Atomic int32_t *lock = lock_of (A_REGION, (uint64_t) number);
  int moved = 0;
  take (lock);
  if (layout->queue_head == head && r->at[MIRROR]) {
    const bool fresh = !r->at[PARITY];
    if (fresh)
      r->at[PARITY] = take_region (PARITY);
    struct region before = *r;
    if (fresh)
      before.at[PARITY] = 0; /* what is not valid is zeros, whatever lay there */
    if (r->at[PARITY] && read_region (&before, data, REGION, 0, c) == 0
        && in_tier (PARITY, r, WRITE, data, REGION, 0, c) == 0) {
      ++layout->queue_head;
      for (int i = 0; i < BLOCKS / 64; ++i)
        r->valid[i] = 0;
      free_region (r, MIRROR);
      atomic_fetch_add (&layout->done[ROTATED], REGION);
      moved = 1;
    } else { /* parity has no room for it: it may have for the next */
      if (fresh && r->at[PARITY])
        free_region (r, PARITY);
      queue[atomic_fetch_add (&layout->queue_tail, 1) % queue_length ()] = number + 1;
      ++layout->queue_head;
    }
  }
  give_back (lock);
  return moved;
}

static int
write_region (int64_t number, char *buf, uint32_t count, uint32_t at, struct course *c)
{
  struct region *r = &regions[number];
  _Atomic int32_t *lock = lock_of (A_REGION, (uint64_t) number);
  for (int tries = 0; tries < 1000; ++tries) {
    int failed = -1;
    take (lock);
    const bool has_place = r->at[MIRROR] || find_place (r, number);
    if (has_place && r->at[MIRROR])
      failed = write_to_mirror (r, buf, count, at, c);
    else if (has_place) {
      failed = in_tier (PARITY, r, WRITE, buf, count, at, c);
      atomic_fetch_add (&layout->done[IN_PLACE], count);
    }
    give_back (lock);
    if (has_place)
      return failed;
    if (!rotate (c)) /* both tiers are full: of what has room in both, something moves first */
      sched_yield ();
  }
  errno = ENOSPC;
  return -1;
}

/* Read or write a stretch of the volume. */
static int
access_volume (int op, char *buf, uint32_t count, uint64_t offset, struct course *c)
{
  if (!layout->online) {
    errno = EIO;
    return -1;
  }
  if (layout->tiers == 1)
    return transfer (&layout->tier[0], op, buf, count, offset, c);
  const struct course start = c ? *c : (struct course) { 0 };
  while (count > 0) {
    const int64_t number = (int64_t) (offset / REGION);
    const uint32_t at = (uint32_t) (offset % REGION), n = count < REGION - at ? count : REGION - at;
    struct course part = start;
    int failed;
    if (op == WRITE)
      failed = write_region (number, buf, n, at, c ? &part : NULL);
    else {
      _Atomic int32_t *lock = lock_of (A_REGION, (uint64_t) number);
      take (lock);
      failed = read_region (&regions[number], buf, n, at, c ? &part : NULL);
      give_back (lock);
    }
    if (failed)
      return -1;
    if (c)
      join (c, &part);
    buf += n;
    offset += n;
    count -= n;
  }
  return 0;
}

/* ---- repair and rotation: one process of all that serve the volume, in threads of its own ----------------------------- */

struct task {
  const struct tier *t;
  int64_t band, row, column;
};
static struct task *tasks;
static int64_t task_count;
static _Atomic int64_t task_next;

static struct course
begin (int64_t node)
{
  const int64_t now = now_ns (CLOCK_MONOTONIC);
  return (struct course) { .now = now, .end = now, .from = node };
}

/* Copy what a chunk of a place must hold, from wherever it can be had. */
static int
mend (const struct task *task, struct piece *p, struct course *c)
{
  const struct tier *t = task->t;
  const struct place place = place_of (t, task->band, task->row, task->column);
  char *data = scratch (2), *sum = scratch (3);
  int failed = 0;
  if (t->kind == PARITY && task->column == t->columns - 1) {
    const struct course start = *c;
    memset (sum, 0, p->count);
    for (p->column = 0; p->column < data_columns (t) && !failed; ++p->column) {
      struct course part = start;
      failed = read_piece (p, data, &part);
      join (c, &part);
      if (!failed)
        xor_into (sum, data, p->count);
    }
    data = sum;
  } else
    failed = read_piece (p, data, c);
  if (failed || put (place, data, p->count, p->offset) == -1)
    return -1;
  struct course start = *c;
  do_beside (c, &start, WRITE, place, p->count);
  return 0;
}

/* Copy a place back. It is clean unless something was missed meanwhile; a later repair looks again. */
static void
repair (const struct task *task)
{
  const struct tier *t = task->t;
  const uint64_t bit = bit_of (t, task->row, task->column);
  const struct place place = place_of (t, task->band, task->row, task->column);
  _Atomic uint64_t *word = marks_of (t, task->band);
  atomic_fetch_and (word, ~(bit << PLACES));
  for (int64_t stripe = 0; stripe < layout->slab_bytes / layout->interleave; ++stripe) {
    struct piece p = { .t = t, .band = task->band, .stripe = stripe, .column = task->column };
    p.offset = (uint64_t) (stripe * layout->interleave);
    p.count = (uint32_t) layout->interleave;
    struct course c = begin (layout->member[place.member].node);
    _Atomic int32_t *lock = lock_piece (&p);
    const int failed = !is_up (place) || mend (task, &p, &c);
    give_back (lock);
    if (failed || stopping)
      return;
    sleep_to (c.end);
    atomic_fetch_add (&layout->done[REPAIR_DONE], layout->interleave);
  }
  uint64_t seen = atomic_load (word);
  while (is_up (place) && !(seen & bit << PLACES) && !atomic_compare_exchange_weak (word, &seen, seen & ~bit))
    ;
}

static void *
repairer (void *unused)
{
  (void) unused;
  for (int64_t i; !stopping && (i = atomic_fetch_add (&task_next, 1)) < task_count;)
    repair (&tasks[i]);
  return NULL;
}

/* Mark all places of a disk that came back empty. */
static void
mark_wiped (void)
{
  for (int64_t i = 0; i < layout->tiers; ++i) {
    const struct tier *t = &layout->tier[i];
    for (int64_t at = 0; at < t->bands * t->rows * t->columns; ++at)
      if (layout->member[places[t->first_place + at].member].wiped)
        atomic_fetch_or (marks_of (t, at / (t->rows * t->columns)), UINT64_C (1) << at % (t->rows * t->columns));
  }
  for (int64_t i = 0; i < layout->members; ++i)
    layout->member[i].wiped = 0;
}

/* List the places that are dirty and up. */
static void
list_tasks (void)
{
  task_count = 0;
  for (int64_t i = 0; i < layout->tiers; ++i) {
    const struct tier *t = &layout->tier[i];
    for (int64_t band = 0; band < t->bands; ++band)
      for (int64_t place = 0; (uint32_t) atomic_load (marks_of (t, band)) && place < t->rows * t->columns; ++place) {
        const struct task task = { t, band, place / t->columns, place % t->columns };
        if (!(atomic_load (marks_of (t, band)) & bit_of (t, task.row, task.column))
            || !is_up (place_of (t, band, task.row, task.column)))
          continue;
        if (task_count % 1024 == 0)
          tasks = realloc (tasks, (size_t) (task_count + 1024) * sizeof *tasks);
        tasks[task_count++] = task;
      }
  }
}

static void
repair_all (void)
{
  pthread_t threads[64];
  const int64_t depth = layout->repair_depth < 64 ? layout->repair_depth : 64;
  atomic_fetch_add (&layout->done[REPAIR_FOUND], task_count * layout->slab_bytes);
  task_next = 0;
  for (int64_t i = 0; i < depth; ++i)
    pthread_create (&threads[i], NULL, repairer, NULL);
  for (int64_t i = 0; i < depth; ++i)
    pthread_join (threads[i], NULL);
}

static bool
must_rotate (void)
{
  return layout->tiers > 1 && layout->rotate_at > 0
         && (double) layout->used[MIRROR] > layout->rotate_at * (double) tier_regions[MIRROR];
}

static bool
keeps (void) /* whether it is this process that repairs and rotates */
{
  int64_t keeper = atomic_load (&layout->keeper);
  if (keeper == own_pid)
    return true;
  if (keeper != 0 && (kill ((pid_t) keeper, 0) == 0 || errno != ESRCH))
    return false;
  return atomic_compare_exchange_strong (&layout->keeper, &keeper, own_pid);
}

static void *
keeper (void *unused)
{
  (void) unused;
  int64_t seen = -1;
  while (!stopping) {
    const int64_t changes = atomic_load (&layout->changes);
    if (keeps () && changes != seen)
      mark_wiped ();
    if (keeps () && layout->online && (changes != seen || task_count > 0)) {
      list_tasks ();
      seen = changes;
      if (task_count > 0)
        repair_all ();
    }
    for (bool moved = keeps () && layout->online; moved && must_rotate () && !stopping;) {
      struct course c = begin (layout->owner);
      if ((moved = rotate (&c)))
        sleep_to (c.end);
    }
    sleep_to (now_ns (CLOCK_MONOTONIC) + SHORT_NS);
  }
  return NULL;
}

/* ---- nbdkit ------------------------------------------------------------------------------------------------------- */

static int
volume_config (const char *key, const char *value)
{
  if (strcmp (key, "node") == 0)
    return nbdkit_parse_int64_t ("node", value, &own_node);
  char **path = strcmp (key, "layout") == 0 ? &layout_path : strcmp (key, "model") == 0 ? &model_path : NULL;
  if (!path) {
    nbdkit_error ("unknown parameter '%s'", key);
    return -1;
  }
  *path = nbdkit_absolute_path (value);
  return *path ? 0 : -1;
}

static int
volume_config_complete (void)
{
  if (layout_path && model_path)
    return 0;
  nbdkit_error ("layout= and model= must be given");
  return -1;
}

/* Map a limits file; an empty path is no limit. */
static int
map_limits (const char *path, struct limits **limits)
{
  *limits = *path ? map_shared (path, sizeof **limits, LIMITS_MAGIC) : NULL;
  return *path && !*limits ? -1 : 0;
}

static int
map_layout (void)
{
  layout = map_shared (layout_path, sizeof *layout, LAYOUT_MAGIC);
  if (layout && layout->bytes > (int64_t) sizeof *layout)
    layout = map_shared (layout_path, (size_t) layout->bytes, LAYOUT_MAGIC);
  if (!layout || own_node < 0 || own_node >= layout->nodes || layout->interleave > LONGEST)
    return -1;
  char *file = (char *) layout;
  places = (const struct place *) (file + layout->places_at);
  marks = (_Atomic uint64_t *) (file + layout->marks_at);
  regions = (struct region *) (file + layout->regions_at);
  region_used = (_Atomic uint8_t *) (file + layout->used_at);
  queue = (_Atomic int64_t *) (file + layout->queue_at);
  for (int64_t i = 0; i < layout->tiers; ++i) {
    const struct tier *t = &layout->tier[i];
    tier_regions[i] = t->bands * layout->slab_bytes * data_columns (t) / REGION;
  }
  return 0;
}

static int
volume_get_ready (void)
{
  for (int i = 0; i < LOADS; ++i)
    late_ns[i] = LATE_USUAL_NS;
  model = map_shared (model_path, sizeof *model, MODEL_MAGIC);
  if (!model || map_layout () == -1)
    return -1;
  for (int64_t i = 0; i < layout->members; ++i) {
    files[i] = (struct backing) { .path = layout->member[i].backing, .fd = -1 };
    if (map_backing (&files[i]) == -1 || map_limits (layout->member[i].limits, &member_limits[i]) == -1)
      return -1;
  }
  for (int64_t i = 0; i < layout->nodes; ++i) {
    const struct node *n = &layout->node[i];
    if (map_limits (n->vm, &vm_limits[i]) || map_limits (n->nic_out, &nic_out[i]) || map_limits (n->nic_in, &nic_in[i]))
      return -1;
  }
  return 0;
}

static int
volume_after_fork (void)
{
  prctl (PR_SET_TIMERSLACK, 1); /* ns; threads started from here on inherit it */
  own_pid = getpid ();
  keeper_runs = pthread_create (&keeper_thread, NULL, keeper, NULL) == 0;
  return keeper_runs ? 0 : -1;
}

static void
volume_cleanup (void)
{
  stopping = true;
  if (keeper_runs)
    pthread_join (keeper_thread, NULL);
  keeper_runs = false;
  int64_t own = own_pid;
  if (layout)
    atomic_compare_exchange_strong (&layout->keeper, &own, 0);
}

static void
volume_unload (void)
{
  volume_cleanup ();
  free (layout_path);
  free (model_path);
}

static int64_t
volume_get_size (void *handle)
{
  (void) handle;
  return layout->size_bytes;
}

static int
fail (const char *what)
{
  const int err = errno == EDQUOT || errno == EFBIG ? ENOSPC : errno;
  nbdkit_error ("%s: %s: %m", layout_path, what);
  nbdkit_set_error (err);
  return -1;
}

/* A flush goes to each copy and ends with the slowest one. */
static int64_t
flush_ns (const struct course *c)
{
  const struct tier *t = &layout->tier[0];
  int64_t drawn = 0;
  for (int64_t row = 0; row < t->rows; ++row) {
    const struct place place = place_of (t, 0, row, 0);
    const struct member *m = &layout->member[place.member];
    if (is_up (place))
      drawn = later (drawn, draw_ns (&model->latency[FLUSH], c->noise + m->log_factor + noise_at (m->node, c->now))
                                + hop_ns (c->from, m->node));
  }
  return drawn + hop_ns (own_node, c->from);
}

static void
count_of_node (int op, uint32_t count, bool redirected)
{
  struct node *n = &layout->node[own_node];
  atomic_fetch_add_explicit (&n->count[op], 1, memory_order_relaxed);
  atomic_fetch_add_explicit (&n->bytes[op], count, memory_order_relaxed);
  if (redirected)
    atomic_fetch_add_explicit (&n->redirected[op], count, memory_order_relaxed);
}

/* Play an I/O of the node. Where another one owns the volume, it is sent there: a hop more, and the bytes once more. */
static int
play (int op, char *buf, uint32_t count, uint64_t offset, bool flush)
{
  struct session *s = current_session ();
  struct course c = begin (layout->owner);
  c.client = true;
  c.noise = noise (s, c.now);
  c.drawn = layout->software_ns + hop_ns (own_node, c.from);
  const bool reads = op == READ;
  c.end = carry (reads ? c.from : own_node, reads ? own_node : c.from, count, c.now) + c.drawn;
  if (access_volume (op, buf, count, offset, &c) == -1)
    return -1;
  const int64_t flushed_ns = flush ? flush_ns (&c) : 0;
  c.drawn += flushed_ns;
  c.end += flushed_ns;
  record (s, op, c.drawn);
  finish (c.end - c.drawn, c.drawn);
  count_io (false, count);
  count_of_node (op, count, own_node != c.from);
  return 0;
}

static int
volume_pread (void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
  const struct handle *h = handle;
  (void) flags;
  const int failed = h->throttled ? play (READ, buf, count, offset, false) : access_volume (READ, buf, count, offset, NULL);
  return failed ? fail ("read") : 0;
}

static int
volume_pwrite (void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
  const struct handle *h = handle;
  char *data = (char *) buf; /* only read from */
  const int failed = h->throttled ? play (WRITE, data, count, offset, flags & NBDKIT_FLAG_FUA)
                                  : access_volume (WRITE, data, count, offset, NULL);
  return failed ? fail ("write") : 0;
}

static int
volume_flush (void *handle, uint32_t flags)
{
  const struct handle *h = handle;
  (void) flags;
  if (h->throttled) {
    struct session *s = current_session ();
    struct course c = begin (layout->owner);
    c.noise = noise (s, c.now);
    const int64_t drawn = flush_ns (&c);
    record (s, FLUSH, drawn);
    finish (c.now, drawn);
  }
  return 0;
}

static struct nbdkit_plugin plugin = {
  .name = "diskbook-volume",
  .longname = "emulated volume",
  .description = "copies on sparse files with modelled latency, caps and network",
  .config = volume_config,
  .config_complete = volume_config_complete,
  .config_help = "layout=FILE model=FILE node=NUMBER",
  .get_ready = volume_get_ready,
  .after_fork = volume_after_fork,
  .cleanup = volume_cleanup,
  .unload = volume_unload,
  .list_exports = played_list_exports,
  .default_export = played_default_export,
  .open = played_open,
  .close = played_close,
  .get_size = volume_get_size,
  .can_write = yes,
  .can_flush = yes,
  .can_fua = disk_can_fua,
  .can_trim = no,
  .can_multi_conn = yes,
  .is_rotational = no,
  .pread = volume_pread,
  .pwrite = volume_pwrite,
  .flush = volume_flush,
  .errno_is_preserved = 1,
};

NBDKIT_REGISTER_PLUGIN (plugin)
