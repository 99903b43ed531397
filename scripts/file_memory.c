/* A program's large allocations in memory that stays with it, and beyond that in a file: preloaded, it saves
   faults of pages and lets a program take more memory than the machine has.

   Allocations of a MiB and more lie in an arena of `FILE_MEMORY_RESIDENT_BYTES`, whose pages stay with the
   process when they are given back. Those of at least `FILE_MEMORY_BYTES` for which it has no room lie in a
   file without a name in `FILE_MEMORY_FOLDER`, which the system writes out where memory is short; of what is
   given back there the first `FILE_MEMORY_KEPT_BYTES` stay. The C library serves all others. An allocation
   takes the first room that is large enough, so that pages that were used are used again. A process that is
   forked shares with its parent what lay in the file, and takes no more of it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define MOST 4096
#define PAGE 4096
#define SMALLEST (1 << 20)
#define FILE_ROOM ((size_t)1 << 40)
#define ANY 16 /* the alignment that every allocation has */

/* The C library's own functions, which need no look-up that would allocate. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *at);

struct piece {
    size_t offset, bytes;
    int taken;
};

static struct arena {
    char *start;
    size_t room, used;  /* bytes of it, and up to where some were ever taken: zeros beyond */
    size_t kept, least; /* bytes whose pages stay when they are given back; the smallest allocation */
    int file, count;
    struct piece pieces[MOST]; /* in the order of their offsets, no two free ones side by side */
} memory = {.file = -1}, in_file = {.file = -1, .least = SIZE_MAX};
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
    }
}

static void unlock(void) { atomic_flag_clear_explicit(&busy, memory_order_release); }

static void unlock_child(void) {
    in_file.least = SIZE_MAX; /* the parent goes on with the file */
    unlock();
}

static void open_arena(struct arena *arena, size_t room, int sharing) {
    int flags = arena->file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *start = mmap(NULL, room, PROT_READ | PROT_WRITE, flags | sharing, arena->file, 0);
    if (start == MAP_FAILED) return;
    arena->start = start;
    arena->room = room;
    arena->pieces[0] = (struct piece){0, room, 0};
    arena->count = 1;
}

static size_t bytes_of(const char *name, size_t otherwise) {
    const char *given = getenv(name);
    return given ? strtoull(given, NULL, 10) / PAGE * PAGE : otherwise;
}

__attribute__((constructor)) static void read_environment(void) {
    const char *folder = getenv("FILE_MEMORY_FOLDER");
    memory.kept = bytes_of("FILE_MEMORY_RESIDENT_BYTES", 0);
    memory.least = SMALLEST;
    if (memory.kept) open_arena(&memory, memory.kept, MAP_NORESERVE);
    if (memory.start) madvise(memory.start, memory.room, MADV_HUGEPAGE); /* harmless where there are none */
    in_file.kept = bytes_of("FILE_MEMORY_KEPT_BYTES", 0);
    in_file.least = bytes_of("FILE_MEMORY_BYTES", SIZE_MAX);
    in_file.file = open(folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (in_file.file >= 0 && !ftruncate(in_file.file, FILE_ROOM)) open_arena(&in_file, FILE_ROOM, 0);
    pthread_atfork(lock, unlock, unlock_child); /* or a child waits for a thread that it does not have */
}

/* The functions that follow are called with the lock. */

static void insert_piece(struct arena *arena, int place, struct piece piece) {
    memmove(arena->pieces + place + 1, arena->pieces + place,
            (size_t)(arena->count - place) * sizeof(struct piece));
    arena->pieces[place] = piece;
    arena->count++;
}

static void remove_piece(struct arena *arena, int place) {
    arena->count--;
    memmove(arena->pieces + place, arena->pieces + place + 1,
            (size_t)(arena->count - place) * sizeof(struct piece));
}

/* Whether the file has room on the disk for a piece of it; memory always has. */
static int has_room(struct arena *arena, size_t offset, size_t bytes) {
    return arena->file < 0 || !fallocate(arena->file, 0, (off_t)offset, (off_t)bytes) || errno == EOPNOTSUPP;
}

/* The first room of an arena, NULL where there is none; `dirty`: its bytes that may not be zeros. */
static void *take(struct arena *arena, size_t bytes, size_t *dirty) {
    if (bytes < arena->least || arena->count == MOST) return NULL;
    for (int place = 0; place < arena->count; place++) {
        struct piece *piece = arena->pieces + place;
        if (piece->taken || piece->bytes < bytes) continue;
        if (!has_room(arena, piece->offset, bytes)) return NULL;
        size_t end = piece->offset + bytes, left = piece->bytes - bytes;
        piece->taken = 1;
        piece->bytes = bytes;
        *dirty = arena->used > end ? bytes : arena->used > piece->offset ? arena->used - piece->offset : 0;
        if (end > arena->used) arena->used = end;
        void *at = arena->start + piece->offset;
        if (left) insert_piece(arena, place + 1, (struct piece){end, left, 0});
        return at;
    }
    return NULL;
}

/* Let the pages of a part of an arena go; they hold zeros from now on. */
static void let_go(struct arena *arena, size_t offset, size_t end) {
    if (end > arena->used) end = arena->used;
    if (offset < end) madvise(arena->start + offset, end - offset, arena->file < 0 ? MADV_DONTNEED : MADV_REMOVE);
}

static void give_back(struct arena *arena, int place) {
    struct piece *piece = arena->pieces + place;
    size_t end = piece->offset + piece->bytes;
    if (arena->least != SIZE_MAX) let_go(arena, piece->offset > arena->kept ? piece->offset : arena->kept, end);
    piece->taken = 0;
    if (place + 1 < arena->count && !piece[1].taken) {
        piece->bytes += piece[1].bytes;
        remove_piece(arena, place + 1);
    }
    if (place && !piece[-1].taken) {
        piece[-1].bytes += piece->bytes;
        remove_piece(arena, place);
    }
}

/* The functions that follow are called without it. */

static struct arena *arena_of(void *at) {
    for (struct arena *arena = &memory;; arena = &in_file) {
        if (arena->start && (char *)at >= arena->start && (char *)at < arena->start + arena->room) return arena;
        if (arena == &in_file) return NULL;
    }
}

static int place_of(struct arena *arena, void *at) {
    size_t offset = (size_t)((char *)at - arena->start);
    int low = 0, high = arena->count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (arena->pieces[middle].offset <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Memory for an allocation of a MiB or more; NULL with ENOMEM where there is none. */
static void *allocate(size_t bytes, size_t alignment, int zeros) {
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE, dirty = 0;
    lock();
    size_t least = in_file.least;
    void *at = take(&memory, whole, &dirty);
    if (!at) at = take(&in_file, whole, &dirty);
    unlock();
    if (!at && bytes < least) return zeros ? __libc_calloc(1, bytes) : __libc_memalign(alignment, bytes);
    if (!at) errno = ENOMEM;
    if (at && zeros) memset(at, 0, dirty);
    return at;
}

/* Bytes of the large allocation at an address, 0 elsewhere. */
static size_t bytes_at(void *at) {
    struct arena *arena = arena_of(at);
    if (!arena) return 0;
    lock();
    size_t bytes = arena->pieces[place_of(arena, at)].bytes;
    unlock();
    return bytes;
}

static void *next_function(const char *name) { return dlsym(RTLD_NEXT, name); }

EXPORTED void *malloc(size_t bytes) {
    return bytes < SMALLEST ? __libc_malloc(bytes) : allocate(bytes, ANY, 0);
}

EXPORTED void *calloc(size_t count, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all) || all < SMALLEST) return __libc_calloc(count, bytes);
    return allocate(all, ANY, 1);
}

EXPORTED void free(void *at) {
    struct arena *arena = arena_of(at);
    if (!arena) {
        __libc_free(at);
        return;
    }
    lock();
    give_back(arena, place_of(arena, at));
    unlock();
}

EXPORTED void *realloc(void *at, size_t bytes) {
    size_t before = bytes_at(at);
    if (!before) return at || bytes < SMALLEST ? __libc_realloc(at, bytes) : allocate(bytes, ANY, 0);
    void *moved = bytes ? malloc(bytes) : NULL;
    if (moved) memcpy(moved, at, before < bytes ? before : bytes);
    if (moved || !bytes) free(at);
    return moved;
}

EXPORTED void *memalign(size_t alignment, size_t bytes) {
    if (bytes < SMALLEST || alignment > PAGE) return __libc_memalign(alignment, bytes);
    return allocate(bytes, alignment, 0);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

EXPORTED int posix_memalign(void **at, size_t alignment, size_t bytes) {
    void *made = memalign(alignment, bytes);
    if (!made) return ENOMEM;
    *at = made;
    return 0;
}

EXPORTED size_t malloc_usable_size(void *at) {
    size_t bytes = bytes_at(at);
    if (bytes) return bytes;
    return ((size_t(*)(void *))next_function("malloc_usable_size"))(at);
}
