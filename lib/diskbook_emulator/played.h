/* What the emulated disk (plugin.c) and the emulated volume (volume.c) have in common: caps, chance, latency, what was
 * done, and data in sparse files. Each is compiled whole, with this header in it.
 *
 * shm.py mirrors every struct marked SHARED (their versions are MAGIC: change both together).
 */
#ifndef DISKBOOK_PLAYED_H
#define DISKBOOK_PLAYED_H
#define NBDKIT_API_VERSION 2
#define _GNU_SOURCE
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

#define LIMITS_MAGIC 0x32304d494c4b5344 /* "DSKLIM02" */
#define MODEL_MAGIC 0x3330444f4d4b5344  /* "DSKMOD03" */
#define SECONDS 16384
#define TRIALS 4096
#define SESSIONS 4096
#define ACTIVITY 16384
#define NS 1000000000LL
#define IDLE_NS (NS / 10)
#define LATE_USUAL_NS 40000
#define LATE_MAX_NS 500000

/* ---- what is shared with Python ------------------------------------------------------------------------------- */

/* SHARED. A bucket as a virtual scheduler (GCRA): `tat` is the time at which it will have been paid for all that was
 * taken from it. Nobody adds tokens, so none is lost when somebody is late. */
struct bucket {
  _Atomic int64_t tat;          /* CLOCK_MONOTONIC, ns */
  _Atomic int64_t tolerance_ns; /* how far `tat` may run ahead of now: the credit, in time, and `catch_up_ns` */
  double ns_per_unit;           /* 0: no limit */
  _Atomic int64_t catch_up_ns;  /* time that may be made up for when a client was late */
  int64_t reserved[4];
};

/* SHARED. */
enum { IOPS_BASE, IOPS_PEAK, BYTES_BASE, BYTES_PEAK, BUCKETS };
struct limits {
  uint64_t magic;
  int64_t reserved[7];
  struct bucket bucket[BUCKETS];
};

/* SHARED. */
struct latency {
  double mean_ns, sigma;
  double offset_ns;    /* added to what was drawn */
  int64_t parallelism; /* internal servers; 0: unlimited */
};

enum { READ, WRITE, FLUSH, HIT, KINDS };

/* SHARED. One trial as the disk saw it; times are CLOCK_REALTIME ns, `ended` 0 while open. */
struct session {
  int64_t index, started, ended;
  double trial_log;
  _Atomic int64_t count[3], sum_ns[3]; /* read, write, flush */
};

/* SHARED. What ended in one second of CLOCK_REALTIME; a hit is an I/O that the host cache answered. */
enum { MISSES, MISS_BYTES, HITS, HIT_BYTES, COUNTS };
struct activity {
  _Atomic int64_t second;
  _Atomic int64_t count[COUNTS];
};

/* SHARED. */
struct model {
  uint64_t magic;
  struct latency latency[KINDS];
  int64_t cache_bytes, cache_writes; /* 0 bytes: no cache */
  double log_factor;
  int64_t epoch_ns;    /* second 0 of `second_log`, CLOCK_MONOTONIC */
  int64_t overhead_ns; /* what a client adds to a latency, besides late wake-ups */
  int64_t seconds, trials;
  _Atomic int64_t sessions; /* how many have begun */
  int64_t fresh_until_ns; /* freshly attached until then, CLOCK_MONOTONIC: `fresh_log` is added */
  double fresh_log;
  int64_t reserved[4];
  double second_log[SECONDS];
  double trial_log[TRIALS];
  struct session session[SESSIONS];
  struct activity activity[ACTIVITY]; /* by second, modulo its length */
};

/* ---- state of this process ------------------------------------------------------------------------------------ */

static struct model *model;

static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;
static int connections;
static _Atomic(struct session *) session;

static int64_t
now_ns (clockid_t clock)
{
  struct timespec t;
  clock_gettime (clock, &t);
  return t.tv_sec * NS + t.tv_nsec;
}

static int64_t
later (int64_t a, int64_t b)
{
  return a > b ? a : b;
}

/* ---- chance --------------------------------------------------------------------------------------------------- */

static uint64_t
next_random (void) /* xoshiro256+ (Blackman and Vigna), one state a thread */
{
  static __thread uint64_t s[4];
  while ((s[0] | s[1] | s[2] | s[3]) == 0)
    if (getrandom (s, sizeof s, 0) != sizeof s)
      s[0] = (uint64_t) now_ns (CLOCK_MONOTONIC) ^ (uintptr_t) s;
  const uint64_t result = s[0] + s[3], t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = (s[3] << 45) | (s[3] >> 19);
  return result;
}

static double
uniform (void) /* in (0, 1) */
{
  return ((double) (next_random () >> 11) + 0.5) * 0x1p-53;
}

static double
normal (void) /* Box and Muller */
{
  return sqrt (-2 * log (uniform ())) * cos (2 * M_PI * uniform ());
}

/* ---- buckets -------------------------------------------------------------------------------------------------- */

/* Take `units` from the bucket; return when they may be used. */
static int64_t
reserve (struct bucket *b, double units, int64_t now)
{
  const double ns_per_unit = b->ns_per_unit;
  if (ns_per_unit <= 0)
    return now;
  const int64_t cost = (int64_t) (units * ns_per_unit);
  int64_t tat = atomic_load_explicit (&b->tat, memory_order_relaxed), start;
  do /* what was not used while idle is no delay to make up for, or every trial would begin above its cap */
    start = later (tat, now - tat > IDLE_NS ? now + b->catch_up_ns : now);
  while (!atomic_compare_exchange_weak_explicit (&b->tat, &tat, start + cost, memory_order_relaxed,
                                                 memory_order_relaxed));
  return later (now, start - b->tolerance_ns);
}

static int64_t
admit (struct limits *l, uint32_t bytes, int64_t now)
{
  if (!l)
    return now;
  int64_t at = reserve (&l->bucket[IOPS_BASE], 1, now);
  at = later (at, reserve (&l->bucket[IOPS_PEAK], 1, now));
  at = later (at, reserve (&l->bucket[BYTES_BASE], bytes, now));
  return later (at, reserve (&l->bucket[BYTES_PEAK], bytes, now));
}

/* ---- latency -------------------------------------------------------------------------------------------------- */

static double
noise (const struct session *s, int64_t now)
{
  const int64_t second = later (0, (now - model->epoch_ns) / NS);
  const double fresh = now < model->fresh_until_ns ? model->fresh_log : 0;
  return model->log_factor + fresh + model->second_log[second % model->seconds] + (s ? s->trial_log : 0);
}

/* Lognormal whose mean is `mean_ns` times exp (noise), and the offset. */
static int64_t
draw_ns (const struct latency *l, double noise)
{
  const double log_drawn = l->sigma <= 0 ? noise : l->sigma * (normal () - l->sigma / 2) + noise;
  return later (0, (int64_t) (l->mean_ns * exp (log_drawn) + l->offset_ns));
}

/* Occupy the internal server that is free first, from `at` for `service_ns`; return when it starts. */

/* Running mean of the lateness of wake-ups, by the binary logarithm of the I/Os under way. */
#define LOADS 12
static _Atomic int64_t late_ns[LOADS];
static _Atomic int under_way;

static void
sleep_to (int64_t wake)
{
  const struct timespec t = { wake / NS, wake % NS };
  while (clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
    ;
}

/* End an I/O that started at `start` and takes `latency_ns` as its client sees it. A client adds to what it sees: a
 * little for its work, and its own late wake-up, which is about as late as ours. Both are taken off, as far as the
 * latency allows, so that the client's mean comes out right on an idle machine and on a busy one. */
static void
finish (int64_t start, int64_t latency_ns)
{
  const unsigned load = (unsigned) atomic_fetch_add_explicit (&under_way, 1, memory_order_relaxed) + 1;
  _Atomic int64_t *late = &late_ns[31 - __builtin_clz (load | 1)];
  const int64_t added = model->overhead_ns + 2 * atomic_load_explicit (late, memory_order_relaxed);
  const int64_t wake = start + later (0, latency_ns - added);
  int64_t error = 0; /* without a sleep nothing was late: else what was learnt from long ones would cut short ones */
  if (now_ns (CLOCK_MONOTONIC) < wake) {
    sleep_to (wake);
    error = now_ns (CLOCK_MONOTONIC) - wake;
    if (error > LATE_MAX_NS)
      error = LATE_MAX_NS;
  }
  const int64_t mean = atomic_load_explicit (late, memory_order_relaxed);
  atomic_store_explicit (late, mean + (error - mean) / 32, memory_order_relaxed);
  atomic_fetch_sub_explicit (&under_way, 1, memory_order_relaxed);
}

/* Count an I/O that has ended. */
static void
count_io (bool hit, uint32_t bytes)
{
  static pthread_mutex_t new_second = PTHREAD_MUTEX_INITIALIZER;
  const int64_t second = now_ns (CLOCK_REALTIME) / NS;
  struct activity *a = &model->activity[second % ACTIVITY];
  if (atomic_load_explicit (&a->second, memory_order_acquire) != second) {
    pthread_mutex_lock (&new_second);
    if (atomic_load (&a->second) != second) {
      for (int i = 0; i < COUNTS; ++i)
        atomic_store (&a->count[i], 0);
      atomic_store_explicit (&a->second, second, memory_order_release);
    }
    pthread_mutex_unlock (&new_second);
  }
  atomic_fetch_add_explicit (&a->count[hit ? HITS : MISSES], 1, memory_order_relaxed);
  atomic_fetch_add_explicit (&a->count[hit ? HIT_BYTES : MISS_BYTES], bytes, memory_order_relaxed);
}

static void
record (struct session *s, int op, int64_t drawn_ns)
{
  atomic_fetch_add_explicit (&s->count[op], 1, memory_order_relaxed);
  atomic_fetch_add_explicit (&s->sum_ns[op], drawn_ns, memory_order_relaxed);
}

/* ---- sessions: from the first I/O to the last close ------------------------------------------------------------- */

/* Clients connect once more, before they start, to learn the size; so it is the first I/O that begins a session. */
static struct session *
current_session (void)
{
  struct session *s = atomic_load_explicit (&session, memory_order_acquire);
  if (s)
    return s;
  pthread_mutex_lock (&session_lock);
  s = atomic_load (&session);
  if (!s) {
    const int64_t index = atomic_load (&model->sessions);
    s = &model->session[index % SESSIONS];
    memset (s, 0, sizeof *s);
    s->index = index;
    s->started = now_ns (CLOCK_REALTIME);
    s->trial_log = model->trial_log[index % model->trials];
    atomic_store (&model->sessions, index + 1);
    atomic_store_explicit (&session, s, memory_order_release);
  }
  pthread_mutex_unlock (&session_lock);
  return s;
}

static void
connected (void)
{
  pthread_mutex_lock (&session_lock);
  ++connections;
  pthread_mutex_unlock (&session_lock);
}

static void
disconnected (void)
{
  pthread_mutex_lock (&session_lock);
  struct session *s = atomic_load (&session);
  if (--connections == 0 && s) {
    s->ended = now_ns (CLOCK_REALTIME);
    atomic_store (&session, NULL);
  }
  pthread_mutex_unlock (&session_lock);
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

static void *
reserve_memory (size_t bytes)
{
  void *p = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* Map a shared file of at least `bytes`, whose first word must be `magic`. */
static void *
map_shared (const char *path, size_t bytes, uint64_t magic)
{
  struct stat st;
  const int fd = open (path, O_RDWR | O_CLOEXEC);
  if (fd == -1 || fstat (fd, &st) == -1 || (size_t) st.st_size < bytes) {
    nbdkit_error ("%s: cannot be opened, or is too short", path);
    if (fd != -1)
      close (fd);
    return NULL;
  }
  uint64_t *p = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close (fd);
  if (p == MAP_FAILED || *p != magic) {
    nbdkit_error ("%s: cannot be mapped, or is of another version", path);
    return NULL;
  }
  return p;
}

/* ---- data ----------------------------------------------------------------------------------------------------- */

#define CHUNK (256 * 1024)
/* A sparse file, mapped. */
struct backing {
  const char *path;
  int fd;
  char *data;
  uint64_t size;
  _Atomic uint8_t *allocated; /* per chunk: has blocks on the filesystem, so touching it cannot fail */
};
static _Atomic bool no_fallocate;

static bool
chunks_known (const struct backing *f, uint64_t offset, uint32_t count)
{
  for (uint64_t c = offset / CHUNK; c <= (offset + count - 1) / CHUNK; ++c)
    if (!atomic_load_explicit (&f->allocated[c], memory_order_relaxed))
      return false;
  return true;
}

/* A page of a hole, once written through the mapping, kills the process if the filesystem is full. So get the blocks
 * first, where an error can still be returned. */
static int
allocate (struct backing *f, uint64_t offset, uint32_t count)
{
  for (uint64_t c = offset / CHUNK; c <= (offset + count - 1) / CHUNK; ++c) {
    if (atomic_load_explicit (&f->allocated[c], memory_order_relaxed))
      continue;
    const uint64_t from = c * CHUNK, left = f->size - from;
    while (fallocate (f->fd, FALLOC_FL_KEEP_SIZE, (off_t) from, (off_t) (left < CHUNK ? left : CHUNK)) == -1)
      if (errno != EINTR)
        return -1;
    atomic_store_explicit (&f->allocated[c], 1, memory_order_relaxed);
  }
  return 0;
}

static int
write_through (struct backing *f, const char *buf, uint32_t count, uint64_t offset)
{
  while (count > 0) {
    const ssize_t n = pwrite (f->fd, buf, count, (off_t) offset);
    if (n == -1 && errno == EINTR)
      continue;
    if (n <= 0)
      return -1;
    buf += n;
    offset += (uint64_t) n;
    count -= (uint32_t) n;
  }
  return 0;
}

static int
store (struct backing *f, const void *buf, uint32_t count, uint64_t offset)
{
  if (!no_fallocate) {
    if (allocate (f, offset, count) == 0) {
      memcpy (f->data + offset, buf, count);
      return 0;
    }
    if (errno != EOPNOTSUPP)
      return -1;
    no_fallocate = true;
  }
  return write_through (f, buf, count, offset);
}

/* On some filesystems (tmpfs) reading a hole through a mapping takes a page, which may not be there; so a range that
 * is not known to have blocks is read by a system call. */
static int
fetch (const struct backing *f, char *buf, uint32_t count, uint64_t offset)
{
  if (chunks_known (f, offset, count)) {
    memcpy (buf, f->data + offset, count);
    return 0;
  }
  while (count > 0) {
    const ssize_t n = pread (f->fd, buf, count, (off_t) offset);
    if (n == -1 && errno == EINTR)
      continue;
    if (n <= 0)
      return -1;
    buf += n;
    offset += (uint64_t) n;
    count -= (uint32_t) n;
  }
  return 0;
}

/* Note which chunks have blocks already, when a disk that was written before is attached again. */
static void
find_allocated (struct backing *f)
{
  off_t from = 0, to;
  while ((from = lseek (f->fd, from, SEEK_DATA)) >= 0 && (to = lseek (f->fd, from, SEEK_HOLE)) > from) {
    for (uint64_t c = ((uint64_t) from + CHUNK - 1) / CHUNK; (c + 1) * CHUNK <= (uint64_t) to; ++c)
      f->allocated[c] = 1;
    from = to;
  }
}

/* Map the file at `f->path`, which must exist. */
static int
map_backing (struct backing *f)
{
  struct stat st;
  f->fd = open (f->path, O_RDWR | O_CLOEXEC);
  if (f->fd == -1 || fstat (f->fd, &st) == -1 || st.st_size <= 0) {
    nbdkit_error ("%s: %m", f->path);
    return -1;
  }
  f->size = (uint64_t) st.st_size;
  f->data = mmap (NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, f->fd, 0);
  f->allocated = reserve_memory (f->size / CHUNK + 1);
  if (f->data == MAP_FAILED || !f->allocated) {
    nbdkit_error ("%s: cannot be mapped: %m", f->path);
    return -1;
  }
  madvise (f->data, f->size, MADV_RANDOM); /* no read-ahead */
  find_allocated (f);
  return 0;
}

/* ---- what all our exports answer to nbdkit -------------------------------------------------------------------- */

static int
yes (void *handle)
{
  (void) handle;
  return 1;
}

static int
no (void *handle)
{
  (void) handle;
  return 0;
}

static int
disk_can_fua (void *handle)
{
  (void) handle;
  return NBDKIT_FUA_NATIVE;
}

struct handle {
  bool throttled;
};

static int
played_list_exports (int readonly, int is_tls, struct nbdkit_exports *exports)
{
  (void) readonly, (void) is_tls;
  return nbdkit_add_export (exports, "data", "with latency and caps")
             || nbdkit_add_export (exports, "unthrottled", "the same data without latency and caps")
         ? -1
         : 0;
}

static const char *
played_default_export (int readonly, int is_tls)
{
  (void) readonly, (void) is_tls;
  return "data";
}

static void *
played_open (int readonly)
{
  (void) readonly;
  const char *name = nbdkit_export_name ();
  const bool unthrottled = name && strcmp (name, "unthrottled") == 0;
  if (!name || (!unthrottled && *name && strcmp (name, "data") != 0)) {
    nbdkit_error ("there is no export '%s'", name ? name : "?");
    return NULL;
  }
  struct handle *h = malloc (sizeof *h);
  if (!h)
    return NULL;
  h->throttled = !unthrottled;
  if (h->throttled)
    connected ();
  return h;
}

static void
played_close (void *handle)
{
  struct handle *h = handle;
  if (h->throttled)
    disconnected ();
  free (h);
}

#endif
