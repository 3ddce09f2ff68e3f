/* An emulated disk for nbdkit: real data in a sparse file, modelled latency and caps.
 *
 * The plugin knows only numbers. Those that Python sets or reads live in small files mapped by both sides; shm.py
 * mirrors every struct marked SHARED in played.h, reservations.py that of reservations (their versions are MAGIC:
 * change both together).
 *
 *   limits file        caps of a disk or of one path of a VM; shared by every nbdkit process that they bind
 *   model file         what one attached disk plays, and what it did (by session, and by second)
 *   reservations file  who may write to a disk; shared by every nbdkit process of that disk
 *
 * Two exports: "data" (or "") plays the model; "unthrottled" has neither latency nor caps, for prefilling.
 *
 * An I/O ends at max(admission by every bucket, a free internal server) + a drawn latency, an absolute time. So a late
 * wake-up delays one I/O and costs no throughput.
 */
#include "played.h"

#define RESERVATIONS_MAGIC 0x31305653524b5344 /* "DSKRSV01" */
#define REGISTRATIONS 32
#define WRITE_EXCLUSIVE_REGISTRANTS 5 /* SPC-4: write exclusive, registrants only */
#define MAX_SERVERS 1024
#define CACHE_BLOCK 4096

/* SHARED. SCSI-3 persistent reservations of a disk. A nexus is one machine's attachment; key 0: not registered. Python
 * changes them, one word at a time; here they are only looked at. */
struct registration {
  _Atomic int64_t nexus;
  _Atomic uint64_t key;
};
struct reservations {
  uint64_t magic;
  _Atomic int64_t generation, holder, type; /* holder and type 0: no reservation */
  int64_t reserved[4];
  struct registration registration[REGISTRATIONS];
};

/* ---- state of this process ------------------------------------------------------------------------------------ */

static char *backing_path, *model_path, *disk_path, *uncached_path, *cached_path, *reservations_path;
static struct reservations *reservations;
static int64_t nexus;
static struct limits *disk_limits, *uncached_limits, *cached_limits;
static struct backing backing = { .fd = -1 };

struct servers {
  pthread_mutex_t lock;
  int64_t free_at[MAX_SERVERS];
};
static struct servers servers[KINDS];

/* Occupy the internal server that is free first, from `at` for `service_ns`; return when it starts. */
static int64_t
serve (int kind, int64_t at, int64_t service_ns)
{
  const int64_t n = model->latency[kind].parallelism;
  struct servers *s = &servers[kind];
  if (n <= 0 || n > MAX_SERVERS)
    return at;
  pthread_mutex_lock (&s->lock);
  int64_t *first = &s->free_at[0];
  for (int64_t i = 1; i < n; ++i)
    if (s->free_at[i] < *first)
      first = &s->free_at[i];
  const int64_t start = later (at, *first);
  *first = start + service_ns;
  pthread_mutex_unlock (&s->lock);
  return start;
}

/* ---- host cache: which 4 KiB blocks are in it, first in first out ------------------------------------------------ */

static _Atomic uint64_t *cached_bits;
static _Atomic uint64_t *cache_ring; /* block + 1; 0: empty */
static uint64_t cache_slots;
static _Atomic uint64_t cache_next;

static bool
cache_has (uint64_t block)
{
  return atomic_load_explicit (&cached_bits[block / 64], memory_order_relaxed) >> (block % 64) & 1;
}

static void
cache_add (uint64_t block)
{
  const uint64_t bit = UINT64_C (1) << (block % 64);
  if (atomic_fetch_or_explicit (&cached_bits[block / 64], bit, memory_order_relaxed) & bit)
    return;
  const uint64_t slot = atomic_fetch_add_explicit (&cache_next, 1, memory_order_relaxed) % cache_slots;
  const uint64_t old = atomic_exchange_explicit (&cache_ring[slot], block + 1, memory_order_relaxed);
  if (old)
    atomic_fetch_and_explicit (&cached_bits[(old - 1) / 64], ~(UINT64_C (1) << ((old - 1) % 64)),
                               memory_order_relaxed);
}

/* Bring the range into the cache; true if all of it was there. */
static bool
cache_touch (uint64_t offset, uint32_t count)
{
  bool hit = true;
  for (uint64_t b = offset / CACHE_BLOCK; b <= (offset + count - 1) / CACHE_BLOCK; ++b)
    if (!cache_has (b)) {
      hit = false;
      cache_add (b);
    }
  return hit;
}

/* ---- one I/O -------------------------------------------------------------------------------------------------- */

/* When the I/O may start, and (through `kind`) at which latency. */
static int64_t
admission (int op, uint32_t count, uint64_t offset, int64_t now, int *kind)
{
  *kind = op;
  if (cached_bits) {
    const bool hit = cache_touch (offset, count);
    if (op == READ ? hit : model->cache_writes != 0) {
      *kind = HIT;
      return admit (cached_limits, count, now);
    }
  }
  return later (admit (disk_limits, count, now), admit (uncached_limits, count, now));
}

/* Play the model for an I/O that came at `now`; `extra_flush` for a write with FUA. */
static void
play (int op, uint32_t count, uint64_t offset, bool extra_flush, int64_t now)
{
  struct session *s = current_session ();
  const double n = noise (s, now);
  int kind = op;
  const int64_t admitted = op == FLUSH ? now : admission (op, count, offset, now, &kind);
  int64_t drawn = draw_ns (&model->latency[kind], n);
  record (s, op, drawn);
  const int64_t start = serve (kind, admitted, drawn);
  if (extra_flush) {
    const int64_t flush_ns = draw_ns (&model->latency[FLUSH], n);
    record (s, FLUSH, flush_ns);
    drawn += flush_ns;
  }
  finish (start, drawn);
  if (op != FLUSH)
    count_io (kind == HIT, count);
}

/* ---- reservations --------------------------------------------------------------------------------------------- */

/* Whether this attachment may write: under a reservation of this type only those that are registered may. */
static bool
may_write (void)
{
  if (!reservations || reservations->type != WRITE_EXCLUSIVE_REGISTRANTS)
    return true;
  for (int i = 0; i < REGISTRATIONS; ++i)
    if (reservations->registration[i].nexus == nexus && reservations->registration[i].key != 0)
      return true;
  return false;
}

/* ---- nbdkit --------------------------------------------------------------------------------------------------- */

static int
disk_config (const char *key, const char *value)
{
  const struct {
    const char *key;
    char **path;
  } known[] = { { "backing", &backing_path },
                { "model", &model_path },
                { "disk_limits", &disk_path },
                { "vm_uncached", &uncached_path },
                { "vm_cached", &cached_path },
                { "reservations", &reservations_path } };
  if (strcmp (key, "nexus") == 0)
    return nbdkit_parse_int64_t ("nexus", value, &nexus);
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strcmp (key, known[i].key) == 0) {
      *known[i].path = nbdkit_absolute_path (value);
      return *known[i].path ? 0 : -1;
    }
  nbdkit_error ("unknown parameter '%s'", key);
  return -1;
}

static int
disk_config_complete (void)
{
  if (backing_path && model_path && disk_path)
    return 0;
  nbdkit_error ("backing=, model= and disk_limits= must be given");
  return -1;
}

static int
make_cache (void)
{
  cache_slots = (uint64_t) model->cache_bytes / CACHE_BLOCK;
  if (cache_slots == 0)
    return 0;
  cache_ring = reserve_memory (cache_slots * sizeof *cache_ring);
  cached_bits = reserve_memory ((backing.size / CACHE_BLOCK / 64 + 1) * sizeof *cached_bits);
  return cache_ring && cached_bits ? 0 : -1;
}

static int
disk_get_ready (void)
{
  for (int k = 0; k < KINDS; ++k)
    pthread_mutex_init (&servers[k].lock, NULL);
  for (int i = 0; i < LOADS; ++i)
    late_ns[i] = LATE_USUAL_NS;
  model = map_shared (model_path, sizeof *model, MODEL_MAGIC);
  disk_limits = map_shared (disk_path, sizeof *disk_limits, LIMITS_MAGIC);
  if (!model || !disk_limits)
    return -1;
  if (uncached_path && !(uncached_limits = map_shared (uncached_path, sizeof *disk_limits, LIMITS_MAGIC)))
    return -1;
  if (cached_path && !(cached_limits = map_shared (cached_path, sizeof *disk_limits, LIMITS_MAGIC)))
    return -1;
  if (reservations_path
      && !(reservations = map_shared (reservations_path, sizeof *reservations, RESERVATIONS_MAGIC)))
    return -1;
  backing.path = backing_path;
  return map_backing (&backing) == -1 ? -1 : make_cache ();
}

static int
disk_after_fork (void)
{
  prctl (PR_SET_TIMERSLACK, 1); /* ns; threads started from here on inherit it */
  return 0;
}

static void
disk_unload (void)
{
  free (backing_path);
  free (model_path);
  free (disk_path);
  free (uncached_path);
  free (cached_path);
  free (reservations_path);
}

static int64_t
disk_get_size (void *handle)
{
  (void) handle;
  return (int64_t) backing.size;
}

static int
disk_pread (void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
  const struct handle *h = handle;
  const int64_t now = now_ns (CLOCK_MONOTONIC);
  (void) flags;
  if (fetch (&backing, buf, count, offset) == -1) {
    nbdkit_error ("%s: read: %m", backing_path);
    return -1;
  }
  if (h->throttled)
    play (READ, count, offset, false, now);
  return 0;
}

static int
disk_pwrite (void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
  const struct handle *h = handle;
  const int64_t now = now_ns (CLOCK_MONOTONIC);
  if (!may_write ()) { /* NBD knows no reservation conflict; this is the nearest of its errors */
    nbdkit_debug ("write refused: reservation conflict");
    nbdkit_set_error (EPERM);
    return -1;
  }
  if (store (&backing, buf, count, offset) == -1) {
    const int err = errno == EDQUOT || errno == EFBIG ? ENOSPC : errno;
    nbdkit_error ("%s: write: %m", backing_path);
    nbdkit_set_error (err);
    return -1;
  }
  if (h->throttled)
    play (WRITE, count, offset, flags & NBDKIT_FLAG_FUA, now);
  else if (cached_bits) /* a prefill passes through the host cache as any write does */
    cache_touch (offset, count);
  return 0;
}

/* The page cache outlives this process, which is all the durability an emulated disk needs: nothing is synced. */
static int
disk_flush (void *handle, uint32_t flags)
{
  const struct handle *h = handle;
  (void) flags;
  if (h->throttled)
    play (FLUSH, 0, 0, false, now_ns (CLOCK_MONOTONIC));
  return 0;
}

static struct nbdkit_plugin plugin = {
  .name = "diskbook",
  .longname = "emulated disk",
  .description = "a sparse file with modelled latency and caps",
  .config = disk_config,
  .config_complete = disk_config_complete,
  .config_help = "backing=FILE model=FILE disk_limits=FILE [vm_uncached=FILE] [vm_cached=FILE] "
                 "[reservations=FILE nexus=NUMBER]",
  .get_ready = disk_get_ready,
  .after_fork = disk_after_fork,
  .unload = disk_unload,
  .list_exports = played_list_exports,
  .default_export = played_default_export,
  .open = played_open,
  .close = played_close,
  .get_size = disk_get_size,
  .can_write = yes,
  .can_flush = yes,
  .can_fua = disk_can_fua,
  .can_trim = no,
  .can_multi_conn = yes,
  .is_rotational = no,
  .pread = disk_pread,
  .pwrite = disk_pwrite,
  .flush = disk_flush,
  .errno_is_preserved = 1,
};

NBDKIT_REGISTER_PLUGIN (plugin)
