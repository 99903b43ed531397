/* The monitor's inner loops: reading nodes, unpacking pages of counters, differences of counters.

   Each function does what the one of the same name in python_kernels.py does, and the same tests hold for both. Only the
   limited API is used, so that one build serves every Python from 3.10 on. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 64
/* A number of fewer digits fits into 64 bits. */
#define MOST_DIGITS 19
#define PROCESS_STAT_BYTES 1024

/* Positions in the last argument of core_rates: columns of counters. */
enum { BUSY, FLOPS, THROTTLED, ENGINES, ENGINES_STOP, TRAFFIC, TRAFFIC_STOP, COLUMN_COUNT };

static int64_t word_at(const char *data, Py_ssize_t index) {
    uint64_t word;
    memcpy(&word, data + 8 * index, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return (int64_t)word;
}

static void put_word(char *place, uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(place, &word, sizeof word);
}

static int argument_count_is(Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted) {
        return 1;
    }
    PyErr_Format(PyExc_TypeError, "%zd arguments given, %zd wanted", given, wanted);
    return 0;
}

static PyObject *words(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 3)) {
        return NULL;
    }
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(arguments[0], &data, &size) < 0) {
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(arguments[1]), count = PyLong_AsSsize_t(arguments[2]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (start < 0 || count < 0 || start > size / 8 || count > size / 8 - start) {
        PyErr_SetString(PyExc_ValueError, "there are not so many words");
        return NULL;
    }
    PyObject *found = PyTuple_New(count);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        PyObject *word = PyLong_FromLongLong(word_at(data, start + index));
        if (!word || PyTuple_SetItem(found, index, word) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* The words of a row at offsets behind its start. */
static PyObject *chosen(const char *data, Py_ssize_t start, PyObject *offsets, Py_ssize_t width) {
    Py_ssize_t count = PyTuple_Size(offsets);
    PyObject *found = count < 0 ? NULL : PyTuple_New(count);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        Py_ssize_t offset = PyLong_AsSsize_t(PyTuple_GetItem(offsets, index));
        if (offset < 0 || offset >= width) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "there are not so many words");
            }
            Py_CLEAR(found);
            break;
        }
        PyObject *word = PyLong_FromLongLong(word_at(data, start + offset));
        if (!word || PyTuple_SetItem(found, index, word) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* The sums of columns over rows that stand `stride` words apart, as words. */
static PyObject *summed(const char *data, Py_ssize_t start, Py_ssize_t count, Py_ssize_t stride, Py_ssize_t rows) {
    PyObject *found = PyBytes_FromStringAndSize(NULL, 8 * count);
    char *sums = found ? PyBytes_AsString(found) : NULL;
    for (Py_ssize_t index = 0; sums && index < count; index++) {
        uint64_t sum = 0;
        for (Py_ssize_t row = 0; row < rows; row++) {
            sum += (uint64_t)word_at(data, start + row * stride + index);
        }
        put_word(sums + 8 * index, sum);
    }
    return found;
}

static PyObject *table(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 6)) {
        return NULL;
    }
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(arguments[0], &data, &size) < 0) {
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(arguments[1]), rows = PyLong_AsSsize_t(arguments[2]);
    Py_ssize_t width = PyLong_AsSsize_t(arguments[3]), extra = PyLong_AsSsize_t(arguments[5]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_ssize_t words = size / 8, stride = width <= words && extra <= words ? width + extra : words;
    if (start < 0 || start > words || rows < 0 || width < 0 || extra < 0 || extra > words ||
        (rows && (width > words || rows > (words - start) / (stride ? stride : 1)))) {
        PyErr_SetString(PyExc_ValueError, "there are not so many words");
        return NULL;
    }
    PyObject *found = PyList_New(rows);
    for (Py_ssize_t row = 0; found && row < rows; row++) {
        PyObject *counts = chosen(data, start + row * stride, arguments[4], width);
        if (!counts || PyList_SetItem(found, row, counts) < 0) {
            Py_CLEAR(found);
        }
    }
    PyObject *sums = found ? summed(data, start + width, extra, stride, rows) : NULL;
    if (!sums) {
        Py_XDECREF(found);
        return NULL;
    }
    return Py_BuildValue("(NN)", found, sums);
}

static PyObject *interleaved(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 3)) {
        return NULL;
    }
    PyObject *pieces = arguments[0], *texts = arguments[2];
    char *numbers;
    Py_ssize_t size;
    Py_ssize_t count = PyList_Size(pieces);
    if (count < 0 || PyBytes_AsStringAndSize(arguments[1], &numbers, &size) < 0) {
        return NULL;
    }
    /* Numbers stand between "[" and "]", with commas between them. */
    const char *at = numbers + 1, *end = numbers + size - 1;
    Py_ssize_t total = size;
    for (Py_ssize_t index = 0; index < count; index++) {
        total += PyBytes_Size(PyList_GetItem(pieces, index));
    }
    PyObject *key, *text;
    Py_ssize_t place = 0;
    while (PyDict_Next(texts, &place, &key, &text)) {
        total += PyBytes_Size(text);
    }
    PyObject *found = PyErr_Occurred() ? NULL : PyBytes_FromStringAndSize(NULL, total);
    if (!found) {
        return NULL;
    }
    char *begin = PyBytes_AsString(found), *out = begin;
    place = 0;
    Py_ssize_t next = PyDict_Next(texts, &place, &key, &text) ? PyLong_AsSsize_t(key) : -1;
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *piece = PyList_GetItem(pieces, index);
        Py_ssize_t length = PyBytes_Size(piece);
        memcpy(out, PyBytes_AsString(piece), (size_t)length);
        out += length;
        if (index + 1 == count) {
            break;
        }
        const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        const char *stop = comma ? comma : end;
        if (index == next) {
            memcpy(out, PyBytes_AsString(text), (size_t)PyBytes_Size(text));
            out += PyBytes_Size(text);
            next = PyDict_Next(texts, &place, &key, &text) ? PyLong_AsSsize_t(key) : -1;
        } else {
            if (at > stop) {
                break;
            }
            memcpy(out, at, (size_t)(stop - at));
            out += stop - at;
        }
        at = stop + 1;
    }
    PyObject *whole = PyBytes_FromStringAndSize(begin, out - begin);
    Py_DECREF(found);
    return whole;
}

/* after[index] - before[index]; on failure an exception is set. */
static int64_t difference(PyObject *before, PyObject *after, Py_ssize_t index) {
    PyObject *old = PyTuple_GetItem(before, index), *new = PyTuple_GetItem(after, index);
    if (!old || !new) {
        return 0;
    }
    int64_t first = PyLong_AsLongLong(old), second = PyLong_AsLongLong(new);
    return (int64_t)((uint64_t)second - (uint64_t)first);
}

static double share_of(double part, double whole) {
    return part <= 0.0 ? 0.0 : part >= whole ? 1.0 : part / whole;
}

static PyObject *core_rates(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 4)) {
        return NULL;
    }
    PyObject *before = arguments[0], *after = arguments[1], *columns = arguments[3];
    double elapsed_ns = PyFloat_AsDouble(arguments[2]);
    Py_ssize_t at[COLUMN_COUNT];
    for (int index = 0; index < COLUMN_COUNT; index++) {
        PyObject *column = PyTuple_GetItem(columns, index);
        at[index] = column ? PyLong_AsSsize_t(column) : -1;
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_ssize_t engines = at[ENGINES_STOP] - at[ENGINES], kinds = at[TRAFFIC_STOP] - at[TRAFFIC];
    if (engines < 0 || kinds < 0 || elapsed_ns <= 0.0) {
        PyErr_SetString(PyExc_ValueError, "no such columns, or no time");
        return NULL;
    }
    double per_second = 1e9 / elapsed_ns;
    PyObject *shares = PyTuple_New(engines), *rates = PyTuple_New(kinds), *whole = PyTuple_New(engines + kinds + 1);
    for (Py_ssize_t index = 0; shares && whole && index < engines; index++) {
        double share = share_of((double)difference(before, after, at[ENGINES] + index), elapsed_ns);
        PyTuple_SetItem(shares, index, PyFloat_FromDouble(share));
        PyTuple_SetItem(whole, index, PyFloat_FromDouble(100.0 * share));
    }
    for (Py_ssize_t index = 0; rates && whole && index < kinds; index++) {
        double moved = (double)difference(before, after, at[TRAFFIC] + index);
        double rate = moved > 0.0 ? moved * per_second : 0.0;
        PyTuple_SetItem(rates, index, PyFloat_FromDouble(rate));
        PyTuple_SetItem(whole, engines + index, PyLong_FromDouble(rate));
    }
    double busy = share_of(1000.0 * (double)difference(before, after, at[BUSY]), elapsed_ns);
    double flops = (double)difference(before, after, at[FLOPS]);
    double throttled = share_of((double)difference(before, after, at[THROTTLED]), elapsed_ns);
    if (shares && rates && whole) {
        PyTuple_SetItem(whole, engines + kinds, PyFloat_FromDouble(100.0 * throttled));
    }
    if (!shares || !rates || !whole || PyErr_Occurred()) {
        Py_XDECREF(shares);
        Py_XDECREF(rates);
        Py_XDECREF(whole);
        return NULL;
    }
    return Py_BuildValue("(ddNNdN)", busy, flops > 0.0 ? flops * per_second : 0.0, shares, rates, throttled, whole);
}

static PyObject *added(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 4)) {
        return NULL;
    }
    PyObject *before = arguments[0], *after = arguments[1];
    Py_ssize_t start = PyLong_AsSsize_t(arguments[2]), stop = PyLong_AsSsize_t(arguments[3]);
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *found = PyTuple_New(stop > start ? stop - start : 0);
    for (Py_ssize_t index = start; found && index < stop; index++) {
        PyObject *new = PyTuple_GetItem(after, index);
        int64_t count = difference(before, after, index);
        if (!PyErr_Occurred() && count < 0) {
            count = PyLong_AsLongLong(new);
        }
        PyObject *value = PyErr_Occurred() ? NULL : PyLong_FromLongLong(count);
        if (!value || PyTuple_SetItem(found, index - start, value) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

static int64_t executions_at(const char *before, const char *after, Py_ssize_t index) {
    int64_t count = word_at(after, index) - (before ? word_at(before, index) : 0);
    return count > 0 ? count : 0;
}

static PyObject *reached_at(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 3)) {
        return NULL;
    }
    char *before, *after;
    Py_ssize_t size_before, size_after;
    if (PyBytes_AsStringAndSize(arguments[0], &before, &size_before) < 0 ||
        PyBytes_AsStringAndSize(arguments[1], &after, &size_after) < 0) {
        return NULL;
    }
    Py_ssize_t bounds = size_after / 8, wanted = PyTuple_Size(arguments[2]);
    if (wanted < 0 || (size_before && size_before != size_after)) {
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_ValueError, "not the same bounds"), NULL);
    }
    before = size_before ? before : NULL;
    int64_t total = 0;
    for (Py_ssize_t index = 0; index < bounds; index++) {
        total += executions_at(before, after, index);
    }
    PyObject *found = PyTuple_New(total ? wanted : 0);
    Py_ssize_t bound = -1;
    int64_t reached = 0;
    for (Py_ssize_t index = 0; found && total && index < wanted; index++) {
        double needed = PyFloat_AsDouble(PyTuple_GetItem(arguments[2], index)) * (double)total;
        if (PyErr_Occurred()) {
            Py_CLEAR(found);
            break;
        }
        if (needed <= 0.0) {
            needed = 0.5;
        }
        while ((double)reached < needed && bound + 1 < bounds) {
            reached += executions_at(before, after, ++bound);
        }
        PyObject *value = PyLong_FromSsize_t(bound);
        if (!value || PyTuple_SetItem(found, index, value) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

static PyObject *read_page(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 2)) {
        return NULL;
    }
    long descriptor = PyLong_AsLong(arguments[0]);
    Py_ssize_t size = PyLong_AsSsize_t(arguments[1]);
    PyObject *data = PyErr_Occurred() ? NULL : PyBytes_FromStringAndSize(NULL, size);
    if (!data) {
        return NULL;
    }
    char *bytes = PyBytes_AsString(data), again[8];
    ssize_t length, other = 8;
    Py_BEGIN_ALLOW_THREADS
    length = pread((int)descriptor, bytes, (size_t)size, 0);
    if (length >= 24) {
        other = pread((int)descriptor, again, 8, 8);
    }
    Py_END_ALLOW_THREADS
    if (length < 0 || other < 0) {
        Py_DECREF(data);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    int is_whole = length >= 24 && other == 8 && !(word_at(bytes, 1) & 1) && memcmp(bytes + 8, again, 8) == 0 &&
                   word_at(bytes, 2) >= 0 && word_at(bytes, 2) <= length / 8;
    if (is_whole && length == size) {
        return data;
    }
    PyObject *found = is_whole ? PyBytes_FromStringAndSize(bytes, length) : Py_NewRef(Py_None);
    Py_DECREF(data);
    return found;
}

/* Fields 14 and 15 of /proc/PID/stat, counted behind the name, which may hold spaces and parentheses. */
static int parse_ticks(const char *text, long long ticks[2]) {
    const char *at = strrchr(text, ')');
    for (int field = 0; at && field < 11; field++) {
        at = strchr(at + 1, ' ');
    }
    at = at ? strchr(at + 1, ' ') : NULL;
    return at && sscanf(at, " %lld %lld", &ticks[0], &ticks[1]) == 2;
}

static PyObject *processor_ticks(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 1)) {
        return NULL;
    }
    Py_ssize_t count = PyList_Size(arguments[0]);
    PyObject *found = count < 0 ? NULL : PyList_New(count);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        long descriptor = PyLong_AsLong(PyList_GetItem(arguments[0], index));
        char text[PROCESS_STAT_BYTES];
        long long ticks[2];
        ssize_t length = -1;
        if (!PyErr_Occurred() && descriptor >= 0) {
            length = pread((int)descriptor, text, sizeof text - 1, 0);
        }
        text[length < 0 ? 0 : length] = 0;
        PyObject *each = PyErr_Occurred() ? NULL
                         : length >= 0 && parse_ticks(text, ticks)
                             ? Py_BuildValue("(LL)", ticks[0], ticks[1])
                             : Py_NewRef(Py_None);
        if (!each || PyList_SetItem(found, index, each) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

static int is_space(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }

/* The number on the first line of a text of at most READ_BYTES bytes; None where there is none. */
static PyObject *count_in(const char *text, Py_ssize_t length) {
    const char *end = memchr(text, '\n', (size_t)length);
    end = end ? end : text + length;
    while (text < end && is_space(*text)) {
        text++;
    }
    while (end > text && is_space(end[-1])) {
        end--;
    }
    const char *digits = text + (text < end && *text == '-');
    int64_t value = 0;
    for (const char *at = digits; at < end; at++) {
        if (*at < '0' || *at > '9') {
            return Py_NewRef(Py_None);
        }
        value = end - digits < MOST_DIGITS ? 10 * value + (*at - '0') : 0;
    }
    if (digits == end) {
        return Py_NewRef(Py_None);
    }
    if (end - digits < MOST_DIGITS) {
        return PyLong_FromLongLong(digits == text ? value : -value);
    }
    char copy[READ_BYTES + 1];
    memcpy(copy, text, (size_t)(end - text));
    copy[end - text] = 0;
    return PyLong_FromString(copy, NULL, 10);
}

static PyObject *parse_count(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    char *text;
    Py_ssize_t length;
    if (!argument_count_is(given, 1) || PyBytes_AsStringAndSize(arguments[0], &text, &length) < 0) {
        return NULL;
    }
    return count_in(text, length < READ_BYTES ? length : READ_BYTES);
}

static PyObject *read_counts(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 3)) {
        return NULL;
    }
    PyObject *descriptors = arguments[0], *texts = arguments[1], *positions = arguments[2];
    Py_ssize_t count = PyList_Size(positions), size = PyList_Size(texts);
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *found = PyList_New(0);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        PyObject *position = PyList_GetItem(positions, index);
        Py_ssize_t at = PyLong_AsSsize_t(position);
        if (at < 0 || at >= size || at >= PyList_Size(descriptors)) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_IndexError, "no such node");
            }
            Py_CLEAR(found);
            break;
        }
        long descriptor = PyLong_AsLong(PyList_GetItem(descriptors, at));
        char buffer[READ_BYTES], *known;
        Py_ssize_t known_size;
        if (PyErr_Occurred() || PyBytes_AsStringAndSize(PyList_GetItem(texts, at), &known, &known_size) < 0) {
            Py_CLEAR(found);
            break;
        }
        ssize_t length;
        Py_BEGIN_ALLOW_THREADS
        do {
            length = descriptor < 0 ? -1 : pread((int)descriptor, buffer, READ_BYTES, 0);
        } while (length < 0 && descriptor >= 0 && errno == EINTR);
        Py_END_ALLOW_THREADS
        if (length == known_size && memcmp(buffer, known, (size_t)length) == 0) {
            continue;
        }
        PyObject *text = length < 0 ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize(buffer, length);
        PyObject *value = length < 0 ? Py_NewRef(Py_None) : count_in(buffer, length);
        PyObject *entry = text && value ? PyTuple_Pack(3, position, text, value) : NULL;
        Py_XDECREF(text);
        Py_XDECREF(value);
        if (!entry || PyList_Append(found, entry) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(entry);
    }
    return found;
}

#define KERNEL(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    KERNEL(words),      KERNEL(table),        KERNEL(interleaved), KERNEL(core_rates),
    KERNEL(reached_at), KERNEL(read_counts), KERNEL(added),       KERNEL(read_page),
    KERNEL(processor_ticks), KERNEL(parse_count),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernels", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModule_Create(&definition); }
