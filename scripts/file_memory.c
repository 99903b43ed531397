/* Large allocations in files: preloaded, it lets a program take more memory than the machine has.

   An allocation of at least `FILE_MEMORY_BYTES` lies in a file without a name in `FILE_MEMORY_FOLDER`, which
   the system writes out where memory is short; the C library serves all others. A process that is forked
   shares such memory with its parent. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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

/* The C library's own functions, which need no look-up that would allocate. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *at);

static struct {
    void *at;
    size_t bytes;
} held[MOST];
static atomic_int used; /* entries of `held` that were ever taken */
static atomic_flag busy = ATOMIC_FLAG_INIT;
static size_t smallest = SIZE_MAX;
static const char *folder = "/tmp";

__attribute__((constructor)) static void read_environment(void) {
    const char *bytes = getenv("FILE_MEMORY_BYTES"), *where = getenv("FILE_MEMORY_FOLDER");
    if (where) folder = where;
    if (bytes) smallest = strtoull(bytes, NULL, 10);
}

static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
    }
}

static void unlock(void) { atomic_flag_clear_explicit(&busy, memory_order_release); }

/* Bytes at an address that lies in a file, 0 elsewhere; forgets it where asked. Only whole pages do. */
static size_t bytes_at(void *at, int forget) {
    size_t bytes = 0;
    if (!at || (uintptr_t)at % PAGE || !atomic_load(&used)) return 0;
    lock();
    for (int entry = 0; entry < used && !bytes; entry++) {
        if (held[entry].at != at) continue;
        bytes = held[entry].bytes;
        if (forget) held[entry].at = NULL;
    }
    unlock();
    return bytes;
}

static int remember(void *at, size_t bytes) {
    int entry = 0;
    lock();
    while (entry < used && held[entry].at) entry++;
    if (entry < MOST) {
        held[entry].at = at;
        held[entry].bytes = bytes;
        if (entry == used) used++;
    }
    unlock();
    return entry < MOST;
}

/* Memory in a file, filled with zeros; NULL with ENOMEM where the disk lacks room. */
static void *in_file(size_t bytes) {
    void *at = MAP_FAILED;
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (!ftruncate(file, bytes) && (!fallocate(file, 0, 0, bytes) || errno == EOPNOTSUPP))
            at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
    }
    if (at != MAP_FAILED && !remember(at, bytes)) {
        munmap(at, bytes);
        at = MAP_FAILED;
    }
    if (at != MAP_FAILED) return at;
    errno = ENOMEM;
    return NULL;
}

EXPORTED void *malloc(size_t bytes) { return bytes < smallest ? __libc_malloc(bytes) : in_file(bytes); }

EXPORTED void *calloc(size_t count, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all) || all < smallest) return __libc_calloc(count, bytes);
    return in_file(all);
}

EXPORTED void free(void *at) {
    size_t bytes = bytes_at(at, 1);
    if (bytes)
        munmap(at, bytes);
    else
        __libc_free(at);
}

EXPORTED void *realloc(void *at, size_t bytes) {
    size_t before = bytes_at(at, 0);
    if (!before) return at || bytes < smallest ? __libc_realloc(at, bytes) : in_file(bytes);
    void *moved = bytes ? malloc(bytes) : NULL;
    if (moved) memcpy(moved, at, before < bytes ? before : bytes);
    if (moved || !bytes) free(at);
    return moved;
}

EXPORTED void *memalign(size_t alignment, size_t bytes) {
    return bytes < smallest || alignment > PAGE ? __libc_memalign(alignment, bytes) : in_file(bytes);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

EXPORTED int posix_memalign(void **at, size_t alignment, size_t bytes) {
    void *made = memalign(alignment, bytes);
    if (!made) return ENOMEM;
    *at = made;
    return 0;
}

EXPORTED size_t malloc_usable_size(void *at) {
    static size_t (*next)(void *);
    size_t bytes = bytes_at(at, 0);
    if (bytes) return bytes;
    if (!next) next = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return next(at);
}
