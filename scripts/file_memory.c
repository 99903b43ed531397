/* A program's large allocations in memory that stays with it, and beyond that in files: preloaded, it saves
   faults of pages and lets a program take more memory than the machine has.

   Allocations of a MiB and more lie in memory that is kept when they are given back, up to
   `FILE_MEMORY_RESIDENT_BYTES` of it in use and kept; the next allocation that fills most of a kept piece
   takes it, and `malloc_trim` lets all go. Beyond that an allocation of at least `FILE_MEMORY_BYTES` lies in
   a file without a name in `FILE_MEMORY_FOLDER`, which the system writes out where memory is short; the C
   library serves all others. A process that is forked shares what lies in files with its parent. */

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
#define ANY 16 /* the alignment that every allocation has */
#define LEAST_FILLED(bytes) ((bytes) / 4 * 3) /* of memory that is used again */

/* The C library's own functions, which need no look-up that would allocate. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *at);

enum state { NONE, IN_FILE, IN_MEMORY, KEPT };

static struct block {
    void *at;
    size_t bytes;
    enum state state;
} blocks[MOST];
static atomic_int used;     /* entries of `blocks` that were ever taken */
static size_t memory_bytes; /* of blocks in memory, those kept for later included */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static size_t smallest_file = SIZE_MAX, most_memory;
static const char *folder = "/tmp";

static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
    }
}

static void unlock(void) { atomic_flag_clear_explicit(&busy, memory_order_release); }

__attribute__((constructor)) static void read_environment(void) {
    const char *bytes = getenv("FILE_MEMORY_BYTES"), *where = getenv("FILE_MEMORY_FOLDER");
    const char *resident = getenv("FILE_MEMORY_RESIDENT_BYTES");
    if (where) folder = where;
    if (resident) most_memory = strtoull(resident, NULL, 10);
    if (bytes) smallest_file = strtoull(bytes, NULL, 10);
    pthread_atfork(lock, unlock, unlock); /* or a child waits for a thread that it does not have */
}

/* The functions that follow are called with the lock. */

static struct block *block_at(void *at) {
    for (int entry = 0; entry < used; entry++)
        if (blocks[entry].state != NONE && blocks[entry].at == at) return blocks + entry;
    return NULL;
}

static struct block *empty_block(void) {
    int entry = 0;
    while (entry < used && blocks[entry].state != NONE) entry++;
    if (entry == MOST) return NULL;
    if (entry == used) used++;
    return blocks + entry;
}

/* The smallest block of memory given back that an allocation fills well. */
static struct block *kept_block(size_t bytes) {
    struct block *best = NULL;
    for (struct block *block = blocks; block < blocks + used; block++) {
        int fits = block->state == KEPT && block->bytes >= bytes && LEAST_FILLED(block->bytes) <= bytes;
        if (fits && (!best || block->bytes < best->bytes)) best = block;
    }
    return best;
}

static int let_kept_go(void) {
    int found = 0;
    for (struct block *block = blocks; block < blocks + used; block++) {
        if (block->state != KEPT) continue;
        munmap(block->at, block->bytes);
        memory_bytes -= block->bytes;
        block->state = NONE;
        found = 1;
    }
    return found;
}

static void *map_memory(size_t bytes) {
    if (memory_bytes + bytes > most_memory) let_kept_go();
    if (memory_bytes + bytes > most_memory) return MAP_FAILED;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return at;
    madvise(at, bytes, MADV_HUGEPAGE); /* fewer faults; harmless where there are none */
    memory_bytes += bytes;
    return at;
}

static void *map_file(size_t bytes) {
    void *at = MAP_FAILED;
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) return at;
    if (!ftruncate(file, bytes) && (!fallocate(file, 0, 0, bytes) || errno == EOPNOTSUPP))
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at;
}

/* A new block, filled with zeros; NULL where there is no room, and where the C library is to serve it. */
static struct block *map_block(size_t bytes) {
    struct block *block = empty_block();
    if (!block) return NULL;
    block->bytes = bytes;
    block->at = map_memory(bytes);
    block->state = IN_MEMORY;
    if (block->at == MAP_FAILED && bytes >= smallest_file) {
        block->at = map_file(bytes);
        block->state = IN_FILE;
    }
    if (block->at != MAP_FAILED) return block;
    block->state = NONE;
    return NULL;
}

/* Memory for an allocation of a MiB or more; NULL with ENOMEM where there is none. */
static void *allocate(size_t bytes, size_t alignment, int zeros) {
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    lock();
    struct block *block = kept_block(whole);
    int dirty = block != NULL;
    if (block)
        block->state = IN_MEMORY;
    else
        block = map_block(whole);
    void *at = block ? block->at : NULL;
    unlock();
    if (!at && bytes < smallest_file)
        return zeros ? __libc_calloc(1, bytes) : __libc_memalign(alignment, bytes);
    if (!at) errno = ENOMEM;
    if (dirty && zeros) memset(at, 0, bytes);
    return at;
}

/* Bytes of the large allocation at an address, 0 elsewhere. Only whole pages are large. */
static size_t bytes_at(void *at) {
    if (!at || (uintptr_t)at % PAGE || !atomic_load(&used)) return 0;
    lock();
    struct block *block = block_at(at);
    size_t bytes = block ? block->bytes : 0;
    unlock();
    return bytes;
}

static void give_back(void *at) {
    lock();
    struct block *block = block_at(at);
    if (block->state == IN_FILE) munmap(at, block->bytes);
    block->state = block->state == IN_FILE ? NONE : KEPT;
    unlock();
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
    if (bytes_at(at))
        give_back(at);
    else
        __libc_free(at);
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

EXPORTED int malloc_trim(size_t pad) {
    lock();
    int found = let_kept_go();
    unlock();
    return ((int (*)(size_t))next_function("malloc_trim"))(pad) || found;
}
