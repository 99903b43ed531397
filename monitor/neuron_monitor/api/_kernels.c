/* The monitor's inner loops: reading nodes, unpacking pages of counters, differences of counters.

   Each function does what the one of the same name in python_kernels.py does, and the same tests hold for both. Only the
   limited API is used, so that one build serves every Python from 3.10 on. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES 64
/* A number of fewer digits fits into 64 bits. */
#define MOST_DIGITS 19
#define PROCESS_STAT_BYTES 1024
/* Longer than any device's path. */
#define PATH_BYTES 256
/* Nodes that are read without the interpreter's lock at a time. */
#define BATCH 64
#define READER_STACK_BYTES (1 << 18)
/* As many engines or kinds of traffic as a core can have, and physical cores as a logical one. */
#define MOST_SERIES 8
#define MOST_PARTS 8
/* As many cores as one process can use. */
#define MOST_ROWS 1024
/* As many numbers of executions as a report has of a process. */
#define MOST_OUTCOMES 32
/* As many percentiles of latency as are told. */
#define MOST_SHARES 16
/* Fields of a core's reading, and of a process's. */
enum { CORE_ID = 0, CORE_WORDS = 3, CORE_CLOCKED = 4 };
enum {
    PROCESS_PID = 0,
    PROCESS_CORES = 5,
    PROCESS_HOST_MEMORY = 6,
    PROCESS_MODELS = 7,
    PROCESS_TIMED = 8,
    PROCESS_ELAPSED = 9,
    PROCESS_PUBLISHED = 10,
    PROCESS_LATENCY = 14,
    PROCESS_FIELDS
};
enum { HISTOGRAM_BOUNDS = 0, HISTOGRAM_WORDS = 1, BOUNDS_SECONDS = 1 };
/* What is known of a process's page, as python_kernels.told has it. */
enum { KNOWN_PAGE, KNOWN_SIZE, KNOWN_SEQUENCE, KNOWN_REVISION, KNOWN_BOUNDS, KNOWN_PROCESS, KNOWN_FIELDS };
/* The first words of a page, and how many stand before a core's counters (docs/simulated-driver.md). */
enum {
    PAGE_FORMAT,
    PAGE_SEQUENCE,
    PAGE_WORD_COUNT,
    PAGE_REVISION,
    PAGE_PUBLISHED,
    PAGE_ELAPSED,
    PAGE_TIMED,
    PAGE_HOST_PRESENT = 8,
    PAGE_CORES = 10,
    PAGE_BOUNDS = 11,
    PAGE_HEADING = 13
};
#define PAGE_KINDS 2
#define PLACE_WORDS 3
#define MOST_COLUMNS 128
/* Of a core's allocation, the seconds of idling. */
enum { ALLOCATION_IDLE = 1 };

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

/* A counter among words in the order of this machine. */
static uint64_t count_at(const char *words, Py_ssize_t index) {
    uint64_t word;
    memcpy(&word, words + 8 * index, sizeof word);
    return word;
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

/* How long a piece of a text is: 32 bits each. */
static Py_ssize_t length_at(const char *lengths, Py_ssize_t index) {
    const unsigned char *at = (const unsigned char *)lengths + 4 * index;
    return (Py_ssize_t)at[0] | (Py_ssize_t)at[1] << 8 | (Py_ssize_t)at[2] << 16 | (Py_ssize_t)at[3] << 24;
}

/* The longest text of a number: a sign, 17 digits, a point, zeros before or behind them, an exponent. */
#define NUMBER_BYTES 40
/* Digits that tell a number of 53 bits from all others. */
#define MOST_FRACTION_DIGITS 17

/* Text that is always the same around values, as it was filled the last time. */
typedef struct {
    Py_ssize_t count, size;
    PyObject *text, **values;
    Py_ssize_t *starts, *lengths;
} Form;

#define FORM_NAME "neuron_monitor.form"

static void free_form(PyObject *capsule) {
    Form *form = PyCapsule_GetPointer(capsule, FORM_NAME);
    for (Py_ssize_t index = 0; form->values && index < form->count; index++) {
        Py_XDECREF(form->values[index]);
    }
    Py_XDECREF(form->text);
    free(form->values);
    free(form->starts);
    free(form->lengths);
    free(form);
}

static PyObject *form(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    char *lengths;
    Py_ssize_t size, at = 0;
    if (!argument_count_is(given, 2) || PyBytes_AsStringAndSize(arguments[1], &lengths, &size) < 0 ||
        PyBytes_Size(arguments[0]) < 0) {
        return NULL;
    }
    Py_ssize_t count = size / 4 - 1;
    if (count < 0) {
        return PyErr_SetString(PyExc_ValueError, "no pieces"), NULL;
    }
    Form *made = calloc(1, sizeof *made);
    PyObject *capsule = made ? PyCapsule_New(made, FORM_NAME, free_form) : PyErr_NoMemory();
    if (!capsule) {
        free(made);
        return NULL;
    }
    *made = (Form){.count = count,
                   .size = PyBytes_Size(arguments[0]),
                   .text = Py_NewRef(arguments[0]),
                   .values = calloc((size_t)count + 1, sizeof *made->values),
                   .starts = calloc((size_t)count + 1, sizeof *made->starts),
                   .lengths = calloc((size_t)count + 1, sizeof *made->lengths)};
    if (!made->values || !made->starts || !made->lengths) {
        Py_DECREF(capsule);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        at += length_at(lengths, index);
        made->starts[index] = at;
    }
    if (at + length_at(lengths, count) != made->size) {
        Py_DECREF(capsule);
        return PyErr_SetString(PyExc_ValueError, "pieces of other lengths"), NULL;
    }
    return capsule;
}

static Py_ssize_t put_digits(char *text, uint64_t number) {
    char digits[20];
    Py_ssize_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    for (Py_ssize_t index = 0; index < count; index++) {
        text[index] = digits[count - 1 - index];
    }
    return count;
}

static const uint64_t powers_of_ten[] = {1,
                                         10,
                                         100,
                                         1000,
                                         10000,
                                         100000,
                                         1000000,
                                         10000000,
                                         100000000,
                                         1000000000,
                                         10000000000,
                                         100000000000,
                                         1000000000000,
                                         10000000000000,
                                         100000000000000,
                                         1000000000000000,
                                         10000000000000000,
                                         100000000000000000};

/* Whether the decimal of so many places that is nearest to `mantissa` / 2^`shift` is read as that number, and that decimal
   in units of its last place. It is if it is nearer than half of a step of the mantissa; below a power of two the steps
   are half as long. */
static int is_told_by(uint64_t mantissa, int shift, int places, uint64_t *decimal) {
    unsigned __int128 power = powers_of_ten[places], scaled = (unsigned __int128)mantissa * power;
    unsigned __int128 half = (unsigned __int128)1 << (shift - 1), rest = scaled & ((half << 1) - 1);
    uint64_t whole = (uint64_t)(scaled >> shift);
    int is_up = rest > half || (rest == half && (whole & 1));
    unsigned __int128 distance = (is_up ? (half << 1) - rest : rest) << 2;
    unsigned __int128 room = mantissa == 1ULL << 52 && !is_up ? power : power << 1;
    *decimal = whole + (uint64_t)is_up;
    return distance < room || (distance == room && !(mantissa & 1));
}

/* Writes the shortest decimal that is read as this number, of the size of percents and of seconds; 0 where it is of
   another size. */
static Py_ssize_t put_plain_fraction(char *text, double number) {
    uint64_t bits, decimal, fraction;
    int fewest = number < 1.0 ? 1 : 0, most = MOST_FRACTION_DIGITS;
    memcpy(&bits, &number, sizeof bits);
    uint64_t mantissa = (bits & ((1ULL << 52) - 1)) | 1ULL << 52;
    int shift = 1075 - (int)(bits >> 52);
    if (number < 1e-3 || number >= 1e6 || !is_told_by(mantissa, shift, most, &decimal)) {
        return 0;
    }
    /* More places tell it too. */
    while (fewest < most) {
        int places = (fewest + most) / 2;
        if (is_told_by(mantissa, shift, places, &decimal)) {
            most = places;
        } else {
            fewest = places + 1;
        }
    }
    is_told_by(mantissa, shift, fewest, &decimal);
    Py_ssize_t length = put_digits(text, decimal / powers_of_ten[fewest]);
    text[length++] = '.';
    fraction = decimal % powers_of_ten[fewest];
    for (int place = (fewest ? fewest : 1) - 1; place >= 0; place--) {
        text[length + place] = (char)('0' + fraction % 10);
        fraction /= 10;
    }
    return length + (fewest ? fewest : 1);
}

static Py_ssize_t put_fraction(char *text, double number) {
    if (number != number || number - number != 0.0) {
        memcpy(text, "null", 4);
        return 4;
    }
    Py_ssize_t length = number == 0.0 ? 0 : put_plain_fraction(text, number);
    if (!length) {
        char *told = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
        length = told ? (Py_ssize_t)strlen(told) : -1;
        if (length > 0 && length <= NUMBER_BYTES) {
            memcpy(text, told, (size_t)length);
        }
        PyMem_Free(told);
    }
    return length;
}

/* Writes a number as JSON; one beyond 64 bits as the largest or smallest of 63. Below 0 where an exception is set. */
static Py_ssize_t put_number(char *text, PyObject *number) {
    if (PyFloat_Check(number)) {
        return put_fraction(text, PyFloat_AsDouble(number));
    }
    if (number == Py_None) {
        memcpy(text, "null", 4);
        return 4;
    }
    int is_beyond;
    long long whole = PyLong_AsLongLongAndOverflow(number, &is_beyond);
    if (is_beyond > 0) {
        unsigned long long large = PyLong_AsUnsignedLongLong(number);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            large = INT64_MAX;
        }
        return put_digits(text, large);
    }
    if (whole == -1 && PyErr_Occurred()) {
        return -1;
    }
    whole = is_beyond < 0 ? -INT64_MAX : whole;
    *text = '-';
    return whole < 0 ? 1 + put_digits(text + 1, 0 - (uint64_t)whole) : put_digits(text, (uint64_t)whole);
}

/* A value that is another than the last time: where it stands, and its text. */
typedef struct {
    Py_ssize_t index, length;
    const char *text;
    char number[NUMBER_BYTES];
} Other;

/* Values that stand in many places, as a period does, are written once: the last ones, by where the object stands. */
#define KNOWN_VALUES 64
typedef struct {
    const PyObject *value;
    const Other *other;
} KnownValue;

/* Writes a number, or finds it written; below 0 where an exception is set. */
static Py_ssize_t tell_number(Other *other, PyObject *value, KnownValue *known) {
    KnownValue *last = known + ((uintptr_t)value >> 4) % KNOWN_VALUES;
    if (last->value == value) {
        other->text = last->other->text;
        return last->other->length;
    }
    *last = (KnownValue){value, other};
    other->text = other->number;
    return put_number(other->number, value);
}

/* Finds the values that are other objects than the last time; how many, below 0 where an exception is set. */
static Py_ssize_t find_others(const Form *form, PyObject *numbers, PyObject *texts, Other *others) {
    Py_ssize_t place = 0, count = 0;
    KnownValue known[KNOWN_VALUES] = {{NULL, NULL}};
    PyObject *key, *text;
    Py_ssize_t next = PyDict_Next(texts, &place, &key, &text) ? PyLong_AsSsize_t(key) : -1;
    for (Py_ssize_t index = 0; index < form->count; index++) {
        PyObject *value = PyList_GetItem(numbers, index);
        int is_text = index == next;
        if (is_text) {
            value = text;
            next = PyDict_Next(texts, &place, &key, &text) ? PyLong_AsSsize_t(key) : -1;
        }
        if (value == form->values[index]) {
            continue;
        }
        Other *other = others + count++;
        other->index = index;
        if (is_text) {
            other->text = PyBytes_AsString(value);
            other->length = PyBytes_Size(value);
        } else {
            other->length = value ? tell_number(other, value, known) : -1;
        }
        if (other->length < 0) {
            return -1;
        }
        PyObject *last = form->values[index];
        form->values[index] = Py_NewRef(value);
        Py_XDECREF(last);
    }
    return PyErr_Occurred() ? -1 : count;
}

/* The last text with other values in it. */
static PyObject *with_others(const Form *form, const Other *others, Py_ssize_t count) {
    Py_ssize_t size = form->size, at = 0;
    for (Py_ssize_t number = 0; number < count; number++) {
        size += others[number].length - form->lengths[others[number].index];
    }
    PyObject *found = PyBytes_FromStringAndSize(NULL, size);
    const char *last = PyBytes_AsString(form->text);
    char *out = found ? PyBytes_AsString(found) : NULL;
    for (Py_ssize_t number = 0; out && number < count; number++) {
        const Other *other = others + number;
        Py_ssize_t stop = form->starts[other->index];
        memcpy(out, last + at, (size_t)(stop - at));
        out += stop - at;
        memcpy(out, other->text, (size_t)other->length);
        out += other->length;
        at = stop + form->lengths[other->index];
    }
    if (out) {
        memcpy(out, last + at, (size_t)(form->size - at));
    }
    return found;
}

/* Notes where the values stand now. */
static void move_values(Form *form, const Other *others, Py_ssize_t count) {
    Py_ssize_t moved = 0, index = 0;
    for (Py_ssize_t number = 0; number <= count; number++) {
        Py_ssize_t stop = number < count ? others[number].index : form->count;
        for (; moved && index < stop; index++) {
            form->starts[index] += moved;
        }
        index = stop;
        if (number < count) {
            form->starts[index] += moved;
            moved += others[number].length - form->lengths[index];
            form->lengths[index++] = others[number].length;
        }
    }
}

static PyObject *filled(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    Form *form = argument_count_is(given, 3) ? PyCapsule_GetPointer(arguments[0], FORM_NAME) : NULL;
    if (!form) {
        return NULL;
    }
    if (PyList_Size(arguments[1]) != form->count || !PyDict_Check(arguments[2])) {
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_ValueError, "not a value for each place"), NULL);
    }
    Other *others = malloc((size_t)(form->count + 1) * sizeof *others);
    if (!others) {
        return PyErr_NoMemory();
    }
    Py_ssize_t count = find_others(form, arguments[1], arguments[2], others);
    PyObject *found = count < 0 ? NULL : count ? with_others(form, others, count) : Py_NewRef(form->text);
    if (found) {
        move_values(form, others, count);
        Py_DECREF(form->text);
        form->text = Py_NewRef(found);
        form->size = PyBytes_Size(found);
    } else {
        /* What stands in the text is not what is noted: all is written the next time. */
        for (Py_ssize_t index = 0; index < form->count; index++) {
            Py_CLEAR(form->values[index]);
        }
    }
    free(others);
    return found;
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
    PyObject *shares = PyTuple_New(engines), *rates = PyTuple_New(kinds);
    for (Py_ssize_t index = 0; shares && index < engines; index++) {
        double share = share_of((double)difference(before, after, at[ENGINES] + index), elapsed_ns);
        PyTuple_SetItem(shares, index, PyFloat_FromDouble(share));
    }
    for (Py_ssize_t index = 0; rates && index < kinds; index++) {
        double moved = (double)difference(before, after, at[TRAFFIC] + index);
        double rate = moved > 0.0 ? moved * per_second : 0.0;
        PyTuple_SetItem(rates, index, PyFloat_FromDouble(rate));
    }
    double busy = share_of(1000.0 * (double)difference(before, after, at[BUSY]), elapsed_ns);
    double flops = (double)difference(before, after, at[FLOPS]);
    double throttled = share_of((double)difference(before, after, at[THROTTLED]), elapsed_ns);
    if (!shares || !rates || PyErr_Occurred()) {
        Py_XDECREF(shares);
        Py_XDECREF(rates);
        return NULL;
    }
    return Py_BuildValue("(ddNNd)", busy, flops > 0.0 ? flops * per_second : 0.0, shares, rates, throttled);
}

/* What is looked at of the counters of the cores of one process. */
typedef struct {
    Py_ssize_t busy, flops, throttled, engines, engines_stop, traffic, traffic_stop, success, statuses_stop;
} Columns;

/* One logical core while its physical ones are added up: means of `count` shares, sums of amounts. */
typedef struct {
    int64_t id;
    int count, is_clocked;
    double busy, flops, throttled;
    double engines[MOST_SERIES], traffic[MOST_SERIES], parts[MOST_PARTS];
} Logical;

static int read_columns(PyObject *told, Columns *columns) {
    Py_ssize_t *places = (Py_ssize_t *)columns;
    for (Py_ssize_t index = 0; index < 9; index++) {
        PyObject *column = PyTuple_GetItem(told, index);
        places[index] = column ? PyLong_AsSsize_t(column) : -1;
        if (PyErr_Occurred()) {
            return -1;
        }
    }
    if (columns->engines_stop - columns->engines > MOST_SERIES || columns->traffic_stop - columns->traffic > MOST_SERIES) {
        PyErr_SetString(PyExc_ValueError, "too many engines or kinds of traffic");
        return -1;
    }
    return 0;
}

/* The counters of a core as they stand in its reading. */
typedef struct {
    PyObject *words;
    const char *data;
    Py_ssize_t width;
} Counts;

/* Takes the counters of a reading, which stays theirs; below 0 where an exception is set. */
static int read_counts(PyObject *reading, Counts *counts) {
    char *data;
    Py_ssize_t size;
    PyObject *words = PyTuple_GetItem(reading, CORE_WORDS);
    if (!words || PyBytes_AsStringAndSize(words, &data, &size) < 0) {
        return -1;
    }
    *counts = (Counts){.words = words, .data = data, .width = size / 8};
    return 0;
}

/* One counter; 0 where there is no such column, which is an exception. */
static uint64_t counted(const Counts *counts, Py_ssize_t column) {
    if (column < 0 || column >= counts->width) {
        PyErr_SetString(PyExc_IndexError, "no such column");
        return 0;
    }
    return count_at(counts->data, column);
}

/* What a counter added. Without counters before, all of it. */
static int64_t change_of(const Counts *before, const Counts *after, Py_ssize_t column) {
    if (before->words == after->words) {
        return 0;
    }
    return (int64_t)(counted(after, column) - (before->words ? counted(before, column) : 0));
}

static double moved(const Counts *before, const Counts *after, Py_ssize_t column) {
    int64_t change = change_of(before, after, column);
    return change > 0 ? (double)change : 0.0;
}

/* Adds what one physical core did to its logical core. */
static void add_core(Logical *core, const Counts *old, const Counts *new, double elapsed_ns, const Columns *columns) {
    int is_idle = elapsed_ns <= 0.0 || change_of(old, new, columns->busy) < 0;
    double busy = is_idle ? 0.0 : share_of(1000.0 * moved(old, new, columns->busy), elapsed_ns);
    if (core->count < MOST_PARTS) {
        core->parts[core->count] = busy;
    }
    core->count++;
    core->busy += busy;
    if (is_idle) {
        return;
    }
    double per_second = 1e9 / elapsed_ns;
    core->flops += moved(old, new, columns->flops) * per_second;
    if (!core->is_clocked) {
        return;
    }
    core->throttled += share_of(moved(old, new, columns->throttled), elapsed_ns);
    for (Py_ssize_t index = 0; index < columns->engines_stop - columns->engines; index++) {
        core->engines[index] += share_of(moved(old, new, columns->engines + index), elapsed_ns);
    }
    for (Py_ssize_t index = 0; index < columns->traffic_stop - columns->traffic; index++) {
        core->traffic[index] += moved(old, new, columns->traffic + index) * per_second;
    }
}

static int append(PyObject *list, PyObject *value) {
    int failed = !value || PyList_Append(list, value) < 0;
    Py_XDECREF(value);
    return failed;
}

/* Appends a logical core's numbers in the order of the report. */
static int put_core(const Logical *core, const Columns *columns, long size, long copies, PyObject *counters,
                    PyObject *activity) {
    double percent = 100.0 / core->count;
    int failed = append(counters, PyFloat_FromDouble(core->busy * percent));
    for (long index = 0; index < copies; index++) {
        failed |= append(counters, PyLong_FromDouble(core->flops));
    }
    for (int index = 0; size > 1 && index < core->count && index < MOST_PARTS; index++) {
        failed |= append(counters, PyFloat_FromDouble(100.0 * core->parts[index]));
    }
    if (!core->is_clocked) {
        return failed | append(activity, Py_NewRef(Py_None));
    }
    for (Py_ssize_t index = 0; index < columns->engines_stop - columns->engines; index++) {
        failed |= append(activity, PyFloat_FromDouble(core->engines[index] * percent));
    }
    for (Py_ssize_t index = 0; index < columns->traffic_stop - columns->traffic; index++) {
        failed |= append(activity, PyLong_FromDouble(core->traffic[index]));
    }
    return failed | append(activity, PyFloat_FromDouble(core->throttled * percent));
}

/* Executions that ended well between two looks; -1 where others ended too, or the counters were reset. */
static int64_t completed_between(const Counts *old, const Counts *new, const Columns *columns) {
    for (Py_ssize_t column = columns->success + 1; column < columns->statuses_stop; column++) {
        if (change_of(old, new, column)) {
            return -1;
        }
    }
    return change_of(old, new, columns->success);
}

/* Adds up the cores of a process to what window_numbers gives; 0 if that went well, else an exception is set. */
static int add_window(PyObject *before, PyObject *after, double elapsed_ns, const Columns *columns, long size,
                      long copies, PyObject *counters, PyObject *activity, int64_t *completed) {
    if (size < 1 || size > MOST_PARTS) {
        PyErr_SetString(PyExc_ValueError, "no such size of a logical core");
        return -1;
    }
    Logical core = {.count = 0};
    PyObject *id, *reading;
    Py_ssize_t place = 0;
    int failed = 0;
    *completed = 0;
    while (!failed && PyDict_Next(after, &place, &id, &reading)) {
        PyObject *was = PyDict_GetItemWithError(before, id), *flag = PyTuple_GetItem(reading, CORE_CLOCKED);
        Counts old = {.words = NULL}, new = {.words = NULL};
        int is_clocked = flag ? PyObject_IsTrue(flag) : -1;
        int64_t logical = PyLong_AsLongLong(id) / size;
        if (PyErr_Occurred() || read_counts(reading, &new) < 0 || (was && read_counts(was, &old) < 0)) {
            return -1;
        }
        if (!was && !is_clocked) {
            old = new; /* A core's own counts: it may have worked for others before. */
        }
        if (core.count && core.id != logical) {
            failed = put_core(&core, columns, size, copies, counters, activity);
            core.count = 0;
        }
        if (!core.count) {
            core = (Logical){.id = logical, .is_clocked = is_clocked};
        }
        add_core(&core, &old, &new, elapsed_ns, columns);
        int64_t ended = completed_between(&old, &new, columns);
        *completed = ended < 0 || *completed < 0 ? -1 : *completed + ended;
        failed |= PyErr_Occurred() != NULL;
    }
    if (!failed && core.count) {
        failed = put_core(&core, columns, size, copies, counters, activity);
    }
    return failed ? -1 : 0;
}

static PyObject *window_numbers(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 6)) {
        return NULL;
    }
    Columns columns;
    double elapsed_ns = PyFloat_AsDouble(arguments[2]);
    long size = PyLong_AsLong(arguments[4]), copies = PyLong_AsLong(arguments[5]);
    if (PyErr_Occurred() || read_columns(arguments[3], &columns) < 0) {
        return NULL;
    }
    PyObject *counters = PyList_New(0), *activity = PyList_New(0);
    int64_t completed = 0;
    int failed = !counters || !activity ||
                 add_window(arguments[0], arguments[1], elapsed_ns, &columns, size, copies, counters, activity, &completed);
    PyObject *found = failed ? NULL : Py_BuildValue("(OOL)", counters, activity, (long long)completed);
    Py_XDECREF(counters);
    Py_XDECREF(activity);
    return found;
}

/* A named tuple with other values in its fields: those that are not NULL, in the order of the fields. */
static PyObject *with_fields(PyObject *record, PyObject *const *values, Py_ssize_t count) {
    Py_ssize_t size = PyTuple_Size(record);
    newfunc make = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    PyObject *fields = size < 0 ? NULL : PyTuple_New(size);
    for (Py_ssize_t index = 0; fields && index < size; index++) {
        PyObject *value = index < count ? values[index] : NULL;
        PyTuple_SetItem(fields, index, Py_NewRef(value ? value : PyTuple_GetItem(record, index)));
    }
    PyObject *arguments = fields ? PyTuple_Pack(1, fields) : NULL;
    PyObject *made = arguments && make ? make(Py_TYPE(record), arguments, NULL) : NULL;
    Py_XDECREF(fields);
    Py_XDECREF(arguments);
    return made;
}

/* A named tuple with another value in one of its fields. */
static PyObject *with_field(PyObject *record, Py_ssize_t field, PyObject *value) {
    PyObject *values[PROCESS_FIELDS] = {NULL};
    values[field] = value;
    return with_fields(record, values, field + 1);
}

/* A core's reading with the counters that stand at `row`: the same if they are the same. */
static PyObject *with_words(PyObject *reading, const Counts *last, const char *row) {
    if (!memcmp(last->data, row, (size_t)(8 * last->width))) {
        return Py_NewRef(reading);
    }
    PyObject *words = PyBytes_FromStringAndSize(row, 8 * last->width);
    PyObject *made = words ? with_field(reading, CORE_WORDS, words) : NULL;
    Py_XDECREF(words);
    return made;
}

/* A page, and how its words are laid out. */
typedef struct {
    char *data;
    Py_ssize_t room, row_words, columns, offsets[MOST_COLUMNS], bounds[PAGE_KINDS];
    uint64_t limits[MOST_COLUMNS], most_bytes;
} Page;

static int read_layout(PyObject *told, Page *page) {
    PyObject *offsets = PyTuple_GetItem(told, 0), *limits = PyTuple_GetItem(told, 1);
    PyObject *width = PyTuple_GetItem(told, 2), *most = PyTuple_GetItem(told, 3);
    if (!offsets || !limits || !width || !most) {
        return -1;
    }
    page->columns = PyTuple_Size(limits);
    page->row_words = PyLong_AsSsize_t(width);
    page->most_bytes = PyLong_AsUnsignedLongLongMask(most);
    if (!PyErr_Occurred() && (page->columns > MOST_COLUMNS || PyTuple_Size(offsets) != page->columns + PLACE_WORDS)) {
        PyErr_SetString(PyExc_ValueError, "no such columns");
    }
    for (Py_ssize_t column = 0; !PyErr_Occurred() && column < page->columns; column++) {
        page->offsets[column] = PyLong_AsSsize_t(PyTuple_GetItem(offsets, PLACE_WORDS + column));
        page->limits[column] = PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(limits, column));
        if (page->offsets[column] < 0 || page->offsets[column] >= page->row_words) {
            PyErr_SetString(PyExc_ValueError, "there are not so many words");
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Reads a page: 1 if it is whole and of the known form, 0 if the caller must look at it. */
static int load_page(int descriptor, Py_ssize_t size, Page *page) {
    char again[8];
    ssize_t length, other = 0;
    Py_BEGIN_ALLOW_THREADS
    length = pread(descriptor, page->data, (size_t)size, 0);
    if (length >= 8 * PAGE_HEADING) {
        other = pread(descriptor, again, 8, 8 * PAGE_SEQUENCE);
    }
    Py_END_ALLOW_THREADS
    if (other != 8 || memcmp(page->data + 8 * PAGE_SEQUENCE, again, 8) || (word_at(again, 0) & 1) ||
        word_at(page->data, PAGE_FORMAT) != 1) {
        return 0;
    }
    int64_t cores = word_at(page->data, PAGE_CORES), words = length / 8;
    for (int kind = 0; kind < PAGE_KINDS; kind++) {
        int64_t bounds = word_at(page->data, PAGE_BOUNDS + kind);
        if (bounds < 0 || bounds > words) {
            return 0;
        }
        page->bounds[kind] = (Py_ssize_t)bounds;
    }
    int64_t stride = page->row_words + page->bounds[0] + page->bounds[1];
    if (cores <= 0 || stride <= 0 || cores > words / stride) {
        return 0;
    }
    int64_t wanted = PAGE_HEADING + page->bounds[0] + page->bounds[1] + cores * stride;
    return wanted <= words && word_at(page->data, PAGE_WORD_COUNT) == wanted;
}

/* A core's reading as its row has it: the last one if nothing changed; NULL without an exception where the caller must
   look at it. */
static PyObject *core_told(const Page *page, Py_ssize_t row, PyObject *last) {
    Counts old;
    uint64_t counts[MOST_COLUMNS];
    for (Py_ssize_t place = 0; place < PLACE_WORDS; place++) {
        if (PyLong_AsLongLong(PyTuple_GetItem(last, place)) != word_at(page->data, row + place)) {
            return NULL;
        }
    }
    if (read_counts(last, &old) < 0 || old.width != page->columns) {
        return NULL;
    }
    for (Py_ssize_t column = 0; column < page->columns; column++) {
        counts[column] = (uint64_t)word_at(page->data, row + page->offsets[column]);
        if (counts[column] > page->limits[column] || (int64_t)counts[column] < 0) {
            return NULL;
        }
    }
    return with_words(last, &old, (const char *)counts);
}

/* The cores of a process by id as its page has them, or NULL as `core_told`. */
static PyObject *cores_told(const Page *page, PyObject *last) {
    Py_ssize_t row = PAGE_HEADING + page->bounds[0] + page->bounds[1], place = 0;
    if (!PyDict_Check(last) || PyDict_Size(last) != word_at(page->data, PAGE_CORES)) {
        return NULL;
    }
    PyObject *found = Py_NewRef(last), *id, *reading;
    while (found && PyDict_Next(last, &place, &id, &reading)) {
        PyObject *now = core_told(page, row, reading);
        if (now && now != reading && found == last) {
            Py_DECREF(found);
            found = PyDict_Copy(last);
        }
        if (!now || !found || (now != reading && PyDict_SetItem(found, id, now) < 0)) {
            Py_CLEAR(found);
        }
        Py_XDECREF(now);
        row += page->row_words + page->bounds[0] + page->bounds[1];
    }
    return found;
}

/* The memory on the host, of which the page tells what the application holds, or NULL as `core_told`. */
static PyObject *host_memory_told(const Page *page, PyObject *last) {
    int64_t present = word_at(page->data, PAGE_HOST_PRESENT);
    PyObject *known = PyDict_Check(last) ? PyDict_GetItemString(last, "application_memory") : NULL;
    if (!known || present < 0 || (uint64_t)present > page->most_bytes) {
        return NULL;
    }
    if (PyLong_AsUnsignedLongLongMask(known) == (uint64_t)present) {
        return Py_NewRef(last);
    }
    PyObject *found = PyDict_Copy(last), *bytes = PyLong_FromLongLong(present);
    if (!found || !bytes || PyDict_SetItemString(found, "application_memory", bytes) < 0) {
        Py_CLEAR(found);
    }
    Py_XDECREF(bytes);
    return found;
}

/* The histograms of latency as sums over the cores, or NULL as `core_told`. */
static PyObject *latency_told(const Page *page, PyObject *last) {
    static const char *const kinds[PAGE_KINDS] = {"device", "total"};
    Py_ssize_t both = page->bounds[0] + page->bounds[1], stride = page->row_words + both;
    Py_ssize_t start = PAGE_HEADING + both + page->row_words, rows = (Py_ssize_t)word_at(page->data, PAGE_CORES);
    PyObject *found = PyDict_Check(last) ? PyDict_Copy(last) : NULL;
    for (int kind = 0; found && kind < PAGE_KINDS; kind++) {
        PyObject *histogram = PyDict_GetItemString(last, kinds[kind]);
        PyObject *sums = histogram ? summed(page->data, start, page->bounds[kind], stride, rows) : NULL;
        PyObject *made = sums ? with_field(histogram, HISTOGRAM_WORDS, sums) : NULL;
        if (!made || PyDict_SetItemString(found, kinds[kind], made) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(sums);
        Py_XDECREF(made);
        start += page->bounds[kind];
    }
    return found;
}

/* A process as its page has it, or NULL as `core_told`. */
static PyObject *process_told(const Page *page, PyObject *last) {
    int64_t elapsed = word_at(page->data, PAGE_ELAPSED);
    PyObject *values[PROCESS_FIELDS] = {NULL}, *found = NULL;
    if (elapsed < 0 || PyTuple_Size(last) != PROCESS_FIELDS) {
        return NULL;
    }
    values[PROCESS_CORES] = cores_told(page, PyTuple_GetItem(last, PROCESS_CORES));
    values[PROCESS_HOST_MEMORY] =
        values[PROCESS_CORES] ? host_memory_told(page, PyTuple_GetItem(last, PROCESS_HOST_MEMORY)) : NULL;
    values[PROCESS_LATENCY] =
        values[PROCESS_HOST_MEMORY] ? latency_told(page, PyTuple_GetItem(last, PROCESS_LATENCY)) : NULL;
    if (values[PROCESS_LATENCY]) {
        values[PROCESS_TIMED] = PyBool_FromLong(word_at(page->data, PAGE_TIMED) != 0);
        values[PROCESS_ELAPSED] = PyLong_FromLongLong(elapsed);
        values[PROCESS_PUBLISHED] = PyFloat_FromDouble((double)word_at(page->data, PAGE_PUBLISHED) / 1e9);
        found = PyErr_Occurred() ? NULL : with_fields(last, values, PROCESS_FIELDS);
    }
    for (int field = 0; field < PROCESS_FIELDS; field++) {
        Py_XDECREF(values[field]);
    }
    return found;
}

/* What is known of one page by now: the same if it was not published anew, None where the caller must look at it. */
static PyObject *page_told(PyObject *known, Page *page) {
    if (known == Py_None) {
        return Py_NewRef(known);
    }
    long descriptor = PyLong_AsLong(PyTuple_GetItem(known, KNOWN_PAGE));
    Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GetItem(known, KNOWN_SIZE)), bounds_size;
    long long sequence = PyLong_AsLongLong(PyTuple_GetItem(known, KNOWN_SEQUENCE));
    long long revision = PyLong_AsLongLong(PyTuple_GetItem(known, KNOWN_REVISION));
    char *bounds;
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(PyTuple_GetItem(known, KNOWN_BOUNDS), &bounds, &bounds_size) < 0) {
        return NULL;
    }
    if (size > page->room) {
        char *larger = realloc(page->data, (size_t)size);
        if (!larger) {
            return PyErr_NoMemory();
        }
        page->data = larger;
        page->room = size;
    }
    if (size < 8 * PAGE_HEADING || !load_page((int)descriptor, size, page)) {
        return Py_NewRef(Py_None);
    }
    if (word_at(page->data, PAGE_SEQUENCE) == sequence) {
        return Py_NewRef(known);
    }
    if (word_at(page->data, PAGE_REVISION) != revision || bounds_size != 8 * (page->bounds[0] + page->bounds[1]) ||
        memcmp(bounds, page->data + 8 * PAGE_HEADING, (size_t)bounds_size)) {
        return Py_NewRef(Py_None);
    }
    PyObject *process = process_told(page, PyTuple_GetItem(known, KNOWN_PROCESS));
    if (!process) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    PyObject *found = PyTuple_New(KNOWN_FIELDS);
    for (Py_ssize_t field = 0; found && field < KNOWN_PROCESS; field++) {
        PyObject *value = field == KNOWN_SEQUENCE ? PyLong_FromLongLong(word_at(page->data, PAGE_SEQUENCE))
                                                  : Py_NewRef(PyTuple_GetItem(known, field));
        PyTuple_SetItem(found, field, value);
    }
    if (!found) {
        Py_DECREF(process);
        return NULL;
    }
    PyTuple_SetItem(found, KNOWN_PROCESS, process);
    return found;
}

static PyObject *told(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    Page page = {.data = NULL};
    if (!argument_count_is(given, 2) || read_layout(arguments[1], &page) < 0) {
        return NULL;
    }
    Py_ssize_t count = PyList_Size(arguments[0]);
    PyObject *found = count < 0 ? NULL : PyList_New(count);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        PyObject *now = page_told(PyList_GetItem(arguments[0], index), &page);
        if (!now || PyList_SetItem(found, index, now) < 0) {
            Py_CLEAR(found);
        }
    }
    free(page.data);
    return found;
}

static PyObject *followed(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 2)) {
        return NULL;
    }
    PyObject *readings = arguments[0];
    char *words;
    Py_ssize_t rows = PyTuple_Size(readings), size, at = 0;
    if (rows < 0 || PyBytes_AsStringAndSize(arguments[1], &words, &size) < 0) {
        return NULL;
    }
    PyObject *found = PyTuple_New(rows);
    int is_new = 0;
    for (Py_ssize_t row = 0; found && row < rows; row++) {
        PyObject *last = PyTuple_GetItem(readings, row);
        Counts known = {.words = NULL};
        int is_whole = read_counts(last, &known) == 0 && 8 * (at + known.width) <= size;
        if (!is_whole && !PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "there are not so many words");
        }
        PyObject *next = is_whole ? with_words(last, &known, words + 8 * at) : NULL;
        is_new |= next != last;
        at += known.width;
        if (!next || PyTuple_SetItem(found, row, next) < 0) {
            Py_CLEAR(found);
        }
    }
    if (found && !is_new) {
        Py_DECREF(found);
        return Py_NewRef(readings);
    }
    return found;
}

/* The cores of a process by id as they are now: the same dictionary if all of them are the same objects. */
static PyObject *cores_now(PyObject *last, PyObject *cores) {
    PyObject *found = NULL, *id, *reading;
    Py_ssize_t place = 0;
    while (PyDict_Next(last, &place, &id, &reading)) {
        PyObject *now = PyDict_GetItemWithError(cores, id);
        if (!now) {
            if (!PyErr_Occurred()) {
                PyErr_SetObject(PyExc_KeyError, id);
            }
            Py_CLEAR(found);
            return NULL;
        }
        if (now == reading) {
            continue;
        }
        if (!found && !(found = PyDict_Copy(last))) {
            return NULL;
        }
        if (PyDict_SetItem(found, id, now) < 0) {
            Py_CLEAR(found);
            return NULL;
        }
    }
    return found ? found : Py_NewRef(last);
}

static PyObject *with_cores(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 2)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_Size(arguments[0]);
    PyObject *found = count < 0 ? NULL : PyTuple_New(count);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        PyObject *process = PyTuple_GetItem(arguments[0], index), *last = PyTuple_GetItem(process, PROCESS_CORES);
        PyObject *now = last ? cores_now(last, arguments[1]) : NULL;
        PyObject *next = !now ? NULL : now == last ? Py_NewRef(process) : with_field(process, PROCESS_CORES, now);
        Py_XDECREF(now);
        if (!next || PyTuple_SetItem(found, index, next) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* Whether two dictionaries have the same keys. */
static int has_keys_of(PyObject *one, PyObject *other) {
    PyObject *key, *value;
    Py_ssize_t place = 0;
    if (one != other && PyDict_Size(one) != PyDict_Size(other)) {
        return 0;
    }
    while (one != other && PyDict_Next(one, &place, &key, &value)) {
        if (!PyDict_GetItemWithError(other, key)) {
            return 0;
        }
    }
    return 1;
}

/* Whether a process tells its own time. */
static int is_clocked(PyObject *process) { return PyTuple_GetItem(process, PROCESS_ELAPSED) != Py_None; }

/* Whether a field of a process may be another one in a report of the same form. */
static int is_counted(Py_ssize_t field) {
    return field == PROCESS_CORES || field == PROCESS_HOST_MEMORY || field == PROCESS_MODELS || field == PROCESS_ELAPSED ||
           field == PROCESS_PUBLISHED || field == PROCESS_LATENCY;
}

/* Whether two looks at a process differ only in what it counts, and what it holds. */
static int is_alike(PyObject *before, PyObject *after) {
    if (PyTuple_Size(before) != PROCESS_FIELDS || PyTuple_Size(after) != PROCESS_FIELDS) {
        return 0;
    }
    for (Py_ssize_t field = 0; field < PROCESS_FIELDS; field++) {
        if (!is_counted(field) && PyTuple_GetItem(before, field) != PyTuple_GetItem(after, field)) {
            return 0;
        }
    }
    PyObject *old = PyTuple_GetItem(before, PROCESS_CORES), *new = PyTuple_GetItem(after, PROCESS_CORES), *id, *reading;
    Py_ssize_t place = 0;
    int clocked = is_clocked(after);
    if (!old || !new || is_clocked(before) != clocked || !has_keys_of(old, new)) {
        return 0;
    }
    while (PyDict_Next(new, &place, &id, &reading)) {
        if (PyObject_IsTrue(PyTuple_GetItem(reading, CORE_CLOCKED)) != clocked) {
            return 0;
        }
    }
    return 1;
}

/* What the cores of a process added in one column, of which a reset leaves what was counted since. */
static int64_t ended_in(PyObject *before, PyObject *after, Py_ssize_t column) {
    PyObject *id, *reading;
    Py_ssize_t place = 0;
    int64_t total = 0;
    while (PyDict_Next(after, &place, &id, &reading)) {
        PyObject *was = PyDict_GetItemWithError(before, id);
        Counts old, new;
        if (read_counts(reading, &new) < 0 || read_counts(was ? was : reading, &old) < 0) {
            return 0;
        }
        int64_t change = change_of(&old, &new, column);
        total += change >= 0 ? change : (int64_t)counted(&new, column);
    }
    return total;
}

/* Puts executions by outcome into the numbers; each outcome is a tuple of columns. */
static int put_outcomes(PyObject *numbers, Py_ssize_t at, PyObject *outcomes, PyObject *before, PyObject *after,
                        int64_t completed, const Columns *columns) {
    Py_ssize_t count = PyTuple_Size(outcomes);
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *parts = PyTuple_GetItem(outcomes, index);
        int64_t total = 0;
        for (Py_ssize_t part = 0; part < PyTuple_Size(parts); part++) {
            Py_ssize_t column = PyLong_AsSsize_t(PyTuple_GetItem(parts, part));
            if (completed < 0) {
                total += ended_in(before, after, column);
            } else if (column == columns->success) {
                total += completed;
            }
        }
        PyObject *number = PyErr_Occurred() ? NULL : PyLong_FromLongLong(total);
        if (!number || PyList_SetItem(numbers, at + index, number) < 0) {
            return -1;
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Whether cores hold other amounts of memory than before, or the host does, or other models are loaded. */
static int holds_other(PyObject *before, PyObject *after, Py_ssize_t start, Py_ssize_t stop) {
    if (PyTuple_GetItem(before, PROCESS_HOST_MEMORY) != PyTuple_GetItem(after, PROCESS_HOST_MEMORY) ||
        PyTuple_GetItem(before, PROCESS_MODELS) != PyTuple_GetItem(after, PROCESS_MODELS)) {
        return 1;
    }
    PyObject *cores = PyTuple_GetItem(before, PROCESS_CORES), *id, *reading;
    Py_ssize_t place = 0;
    while (PyDict_Next(PyTuple_GetItem(after, PROCESS_CORES), &place, &id, &reading)) {
        PyObject *was = PyDict_GetItemWithError(cores, id);
        Counts old, new;
        if (!was || was == reading) {
            continue;
        }
        if (read_counts(was, &old) < 0 || read_counts(reading, &new) < 0) {
            return 0;
        }
        for (Py_ssize_t column = start; column < stop; column++) {
            if (change_of(&old, &new, column)) {
                return 1;
            }
        }
    }
    return 0;
}

static int64_t executions_at(const char *before, const char *after, Py_ssize_t index) {
    int64_t count = word_at(after, index) - (before ? word_at(before, index) : 0);
    return count > 0 ? count : 0;
}

/* Positions at which the counts that were added reach shares of their sum; how many, 0 where none was added. */
static Py_ssize_t reach(const char *before, const char *after, Py_ssize_t bounds, PyObject *shares, Py_ssize_t *at) {
    int64_t total = 0, reached = 0;
    Py_ssize_t wanted = PyTuple_Size(shares), bound = -1;
    for (Py_ssize_t index = 0; index < bounds; index++) {
        total += executions_at(before, after, index);
    }
    for (Py_ssize_t index = 0; total && index < wanted; index++) {
        double needed = PyFloat_AsDouble(PyTuple_GetItem(shares, index)) * (double)total;
        if (needed <= 0.0) {
            needed = 0.5;
        }
        while ((double)reached < needed && bound + 1 < bounds) {
            reached += executions_at(before, after, ++bound);
        }
        at[index] = bound;
    }
    return total ? wanted : 0;
}

/* Positions in a place of refill: where groups begin among the numbers, and how many numbers they have. */
enum {
    PLACE_COUNTERS,
    PLACE_COUNTER_COUNT,
    PLACE_EXECUTIONS,
    PLACE_SIZE,
    PLACE_ACTIVITY,
    PLACE_ACTIVITY_COUNT,
    PLACE_TOTAL,
    PLACE_DEVICE,
    PLACE_FIELDS
};

/* Puts the percentiles of one kind of latency into the numbers; 2 if there are none, or some, unlike before. */
static int put_latency(PyObject *numbers, Py_ssize_t at, PyObject *before, PyObject *after, const char *kind,
                       PyObject *shares) {
    PyObject *old = PyDict_Check(before) ? PyDict_GetItemString(before, kind) : NULL;
    PyObject *new = PyDict_Check(after) ? PyDict_GetItemString(after, kind) : NULL;
    char *first, *last;
    Py_ssize_t first_size, last_size, reached[MOST_SHARES];
    if (!old || !new || PyTuple_GetItem(old, HISTOGRAM_BOUNDS) != PyTuple_GetItem(new, HISTOGRAM_BOUNDS)) {
        return 2;
    }
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(old, HISTOGRAM_WORDS), &first, &first_size) < 0 ||
        PyBytes_AsStringAndSize(PyTuple_GetItem(new, HISTOGRAM_WORDS), &last, &last_size) < 0) {
        return -1;
    }
    if (first_size != last_size || PyTuple_Size(shares) > MOST_SHARES) {
        return 2;
    }
    Py_ssize_t count = reach(first, last, last_size / 8, shares, reached);
    PyObject *seconds = PyTuple_GetItem(PyTuple_GetItem(new, HISTOGRAM_BOUNDS), BOUNDS_SECONDS);
    if ((count > 0) != (at >= 0) || PyErr_Occurred()) {
        return PyErr_Occurred() ? -1 : 2;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *value = PyTuple_GetItem(seconds, reached[index]);
        if (!value || PyList_SetItem(numbers, at + index, Py_NewRef(value)) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Puts the numbers of a list into others, if they are as many as there were: 0, or 2 if they are not. */
static int put_list(PyObject *numbers, long at, long count, PyObject *list) {
    if (at < 0) {
        return 0;
    }
    return PyList_Size(list) != count ? 2 : PyList_SetSlice(numbers, at, at + count, list) < 0 ? -1 : 0;
}

/* Writes one process's numbers but those of its latency: 0, or 2 if it is of another form. */
static int put_window(PyObject *numbers, const long *at, PyObject *old, PyObject *new, double elapsed_ns,
                      const Columns *columns, long copies, PyObject *outcomes) {
    PyObject *counters = PyList_New(0), *activity = PyList_New(0);
    int64_t completed = 0;
    int outcome = counters && activity && !add_window(old, new, elapsed_ns, columns, at[PLACE_SIZE], copies, counters,
                                                      activity, &completed) ? 0 : -1;
    outcome = outcome ? outcome : put_list(numbers, at[PLACE_COUNTERS], at[PLACE_COUNTER_COUNT], counters);
    outcome = outcome ? outcome : put_list(numbers, at[PLACE_ACTIVITY], at[PLACE_ACTIVITY_COUNT], activity);
    if (!outcome && at[PLACE_EXECUTIONS] >= 0) {
        outcome = put_outcomes(numbers, at[PLACE_EXECUTIONS], outcomes, old, new, completed, columns);
    }
    Py_XDECREF(counters);
    Py_XDECREF(activity);
    return outcome;
}

/* The time between two looks at a process, by its own clock if it has one; below 0 where that went back, or none of
   the two was told anew. */
static double passed_on(PyObject *before, PyObject *after, double wall_ns) {
    if (!is_clocked(after)) {
        return wall_ns;
    }
    int64_t old = PyLong_AsLongLong(PyTuple_GetItem(before, PROCESS_ELAPSED));
    int64_t new = PyLong_AsLongLong(PyTuple_GetItem(after, PROCESS_ELAPSED));
    double told = PyFloat_AsDouble(PyTuple_GetItem(after, PROCESS_PUBLISHED));
    return PyErr_Occurred() || told == PyFloat_AsDouble(PyTuple_GetItem(before, PROCESS_PUBLISHED)) ? -1.0
                                                                                                  : (double)(new - old);
}

/* Writes one process's numbers: 1 if it holds other memory than before, 0 if not, 2 if it is of another form. */
static int refill_process(PyObject *numbers, PyObject *place, PyObject *before, PyObject *after, double wall_ns,
                          const Columns *columns, long copies, PyObject *outcomes, PyObject *memory, PyObject *shares) {
    if (!is_alike(before, after)) {
        return PyErr_Occurred() ? -1 : 2;
    }
    long at[PLACE_FIELDS];
    for (int index = 0; index < PLACE_FIELDS; index++) {
        PyObject *item = PyTuple_GetItem(place, index);
        at[index] = item ? PyLong_AsLong(item) : -1;
    }
    double elapsed_ns = passed_on(before, after, wall_ns);
    if (PyErr_Occurred() || elapsed_ns < 0.0) {
        return PyErr_Occurred() ? -1 : 2;
    }
    PyObject *old = PyTuple_GetItem(before, PROCESS_CORES), *new = PyTuple_GetItem(after, PROCESS_CORES);
    int outcome = put_window(numbers, at, old, new, elapsed_ns, columns, copies, outcomes);
    if (!outcome && is_clocked(after) && at[PLACE_EXECUTIONS] >= 0) {
        PyObject *first = PyTuple_GetItem(before, PROCESS_LATENCY), *last = PyTuple_GetItem(after, PROCESS_LATENCY);
        outcome = put_latency(numbers, at[PLACE_TOTAL], first, last, "total", shares);
        outcome = outcome ? outcome : put_latency(numbers, at[PLACE_DEVICE], first, last, "device", shares);
    }
    if (outcome || PyErr_Occurred()) {
        return PyErr_Occurred() ? -1 : outcome;
    }
    Py_ssize_t start = PyLong_AsSsize_t(PyTuple_GetItem(memory, 0)), stop = PyLong_AsSsize_t(PyTuple_GetItem(memory, 1));
    int holds = holds_other(before, after, start, stop);
    return PyErr_Occurred() ? -1 : holds;
}

static PyObject *refill(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 10)) {
        return NULL;
    }
    PyObject *numbers = arguments[0], *places = arguments[1], *before = arguments[2], *after = arguments[3];
    Columns columns;
    double elapsed_ns = PyFloat_AsDouble(arguments[4]);
    long copies = PyLong_AsLong(arguments[6]);
    Py_ssize_t count = PyTuple_Size(after);
    if (PyErr_Occurred() || read_columns(arguments[5], &columns) < 0) {
        return NULL;
    }
    int outcome = PyTuple_Size(before) == count && PyList_Size(places) == count ? 0 : 2;
    PyObject *found = PyErr_Occurred() ? NULL : PyList_New(0);
    for (Py_ssize_t index = 0; found && outcome != 2 && index < count; index++) {
        outcome = refill_process(numbers, PyList_GetItem(places, index), PyTuple_GetItem(before, index),
                                 PyTuple_GetItem(after, index), elapsed_ns, &columns, copies, arguments[7], arguments[8],
                                 arguments[9]);
        if (outcome < 0 || (outcome == 1 && append(found, PyLong_FromSsize_t(index)))) {
            Py_CLEAR(found);
        }
    }
    if (found && outcome == 2) {
        Py_DECREF(found);
        return Py_NewRef(Py_None);
    }
    return found;
}

/* The counters of all cores at two moments, row by row. */
typedef struct {
    const char *before, *after;
    Py_ssize_t rows, width;
} Rows;

static int read_rows(PyObject *before, PyObject *after, PyObject *width, Rows *rows) {
    char *old, *new;
    Py_ssize_t old_size, new_size;
    if (PyBytes_AsStringAndSize(before, &old, &old_size) < 0 || PyBytes_AsStringAndSize(after, &new, &new_size) < 0) {
        return -1;
    }
    *rows = (Rows){.before = old, .after = new, .width = PyLong_AsSsize_t(width)};
    if (!PyErr_Occurred() && (rows->width <= 0 || old_size != new_size || new_size % (8 * rows->width))) {
        PyErr_SetString(PyExc_ValueError, "not the same rows");
    }
    rows->rows = PyErr_Occurred() ? 0 : new_size / (8 * rows->width);
    return PyErr_Occurred() ? -1 : 0;
}

/* What a counter of a row added. */
static int64_t row_change(const Rows *rows, Py_ssize_t row, Py_ssize_t column) {
    Py_ssize_t at = row * rows->width + column;
    return (int64_t)(count_at(rows->after, at) - count_at(rows->before, at));
}

static double row_moved(const Rows *rows, Py_ssize_t row, Py_ssize_t column) {
    int64_t change = row_change(rows, row, column);
    return change > 0 ? (double)change : 0.0;
}

/* Adds what one physical core did to its logical core, as add_core does for cores without a clock of their own. */
static void add_row(Logical *core, const Rows *rows, Py_ssize_t row, double elapsed_ns, const Columns *columns) {
    int is_idle = elapsed_ns <= 0.0 || row_change(rows, row, columns->busy) < 0;
    double busy = is_idle ? 0.0 : share_of(1000.0 * row_moved(rows, row, columns->busy), elapsed_ns);
    if (core->count < MOST_PARTS) {
        core->parts[core->count] = busy;
    }
    core->count++;
    core->busy += busy;
    core->flops += is_idle ? 0.0 : row_moved(rows, row, columns->flops) * (1e9 / elapsed_ns);
}

/* Executions of a row that ended well; -1 where others ended too, or the counters were reset. */
static int64_t row_completed(const Rows *rows, Py_ssize_t row, const Columns *columns) {
    Py_ssize_t at = row * rows->width, count = columns->statuses_stop - columns->success - 1;
    const char *old = rows->before + 8 * (at + columns->success + 1);
    if (memcmp(old, rows->after + 8 * (at + columns->success + 1), (size_t)(8 * count))) {
        return -1;
    }
    return row_change(rows, row, columns->success);
}

/* Where the numbers of one process stand, and which rows are its cores'. */
typedef struct {
    Py_ssize_t counters, count, executions, size, rows[MOST_ROWS], row_count;
} Place;

static int read_place(PyObject *told, PyObject *ids, const Rows *rows, const Columns *columns, Place *place) {
    PyObject *counters = PyTuple_GetItem(told, PLACE_COUNTERS), *count = PyTuple_GetItem(told, PLACE_COUNTER_COUNT);
    PyObject *executions = PyTuple_GetItem(told, PLACE_EXECUTIONS), *size = PyTuple_GetItem(told, PLACE_SIZE);
    place->row_count = PyTuple_Size(ids);
    if (!counters || !count || !executions || !size || place->row_count < 0) {
        return -1;
    }
    place->counters = PyLong_AsSsize_t(counters);
    place->count = PyLong_AsSsize_t(count);
    place->executions = PyLong_AsSsize_t(executions);
    place->size = PyLong_AsSsize_t(size);
    int is_whole = place->row_count <= MOST_ROWS && place->size >= 1 && place->size <= MOST_PARTS &&
                   columns->busy < rows->width && columns->flops < rows->width && columns->statuses_stop <= rows->width;
    for (Py_ssize_t index = 0; is_whole && index < place->row_count; index++) {
        place->rows[index] = PyLong_AsSsize_t(PyTuple_GetItem(ids, index));
        is_whole = place->rows[index] >= 0 && place->rows[index] < rows->rows;
    }
    if (!is_whole && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "no such rows");
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* The columns of the statuses that are part of one number of executions. */
typedef struct {
    Py_ssize_t count, columns[MOST_COLUMNS];
    int has_success;
} Outcome;

static int read_outcomes(PyObject *told, const Columns *columns, const Rows *rows, Outcome *outcomes) {
    Py_ssize_t count = PyTuple_Size(told);
    if (count > MOST_OUTCOMES) {
        PyErr_SetString(PyExc_ValueError, "too many outcomes");
    }
    for (Py_ssize_t index = 0; !PyErr_Occurred() && index < count; index++) {
        PyObject *parts = PyTuple_GetItem(told, index);
        Outcome *outcome = outcomes + index;
        *outcome = (Outcome){.count = PyTuple_Size(parts)};
        for (Py_ssize_t part = 0; part < outcome->count && !PyErr_Occurred(); part++) {
            Py_ssize_t column = PyLong_AsSsize_t(PyTuple_GetItem(parts, part));
            if (!PyErr_Occurred() && (part >= MOST_COLUMNS || column < 0 || column >= rows->width)) {
                PyErr_SetString(PyExc_ValueError, "no such columns");
                break;
            }
            outcome->columns[part] = column;
            outcome->has_success |= column == columns->success;
        }
    }
    return PyErr_Occurred() ? -1 : (int)count;
}

/* Executions of some statuses, after a reset what was counted since. */
static int64_t row_outcome(const Place *place, const Rows *rows, const Outcome *outcome, int64_t completed) {
    int64_t total = 0;
    if (completed >= 0) {
        return outcome->has_success ? completed : 0;
    }
    for (Py_ssize_t part = 0; part < outcome->count; part++) {
        for (Py_ssize_t index = 0; index < place->row_count; index++) {
            Py_ssize_t row = place->rows[index], column = outcome->columns[part];
            int64_t change = row_change(rows, row, column);
            total += change >= 0 ? change : (int64_t)count_at(rows->after, row * rows->width + column);
        }
    }
    return total;
}

/* Puts the numbers of one logical core where they stand; as many as there were. */
static int put_logical(PyObject *numbers, Py_ssize_t *at, Py_ssize_t stop, const Logical *core, Py_ssize_t size,
                       long copies) {
    Py_ssize_t count = 1 + copies + (size > 1 ? core->count : 0);
    if (*at + count > stop) {
        PyErr_SetString(PyExc_ValueError, "not as many numbers as there were");
        return -1;
    }
    PyObject *flops = PyLong_FromDouble(core->flops);
    int failed = !flops || PyList_SetItem(numbers, (*at)++, PyFloat_FromDouble(core->busy * (100.0 / core->count)));
    for (long index = 0; !failed && index < copies; index++) {
        failed = PyList_SetItem(numbers, (*at)++, Py_NewRef(flops));
    }
    Py_XDECREF(flops);
    for (int index = 0; size > 1 && index < core->count && index < MOST_PARTS; index++) {
        failed |= PyList_SetItem(numbers, (*at)++, PyFloat_FromDouble(100.0 * core->parts[index]));
    }
    return failed || PyErr_Occurred() ? -1 : 0;
}

/* Puts what the cores of a process did where it stands, a logical core at a time. */
static int put_rows(PyObject *numbers, const Place *place, PyObject *cores, const Rows *rows, double elapsed_ns,
                    const Columns *columns, long copies) {
    Logical core = {.count = 0};
    Py_ssize_t at = place->counters, stop = place->counters + place->count;
    for (Py_ssize_t index = 0; index < place->row_count; index++) {
        int64_t logical = PyLong_AsLongLong(PyTuple_GetItem(cores, index)) / place->size;
        if (core.count && core.id != logical) {
            if (put_logical(numbers, &at, stop, &core, place->size, copies) < 0) {
                return -1;
            }
            core.count = 0;
        }
        if (!core.count) {
            core = (Logical){.id = logical};
        }
        add_row(&core, rows, place->rows[index], elapsed_ns, columns);
    }
    if (core.count && put_logical(numbers, &at, stop, &core, place->size, copies) < 0) {
        return -1;
    }
    if (at != stop) {
        PyErr_SetString(PyExc_ValueError, "not as many numbers as there were");
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Whether the cores of a process hold other amounts of memory than before. */
static int rows_hold_other(const Place *place, const Rows *rows, Py_ssize_t start, Py_ssize_t stop) {
    for (Py_ssize_t index = 0; index < place->row_count; index++) {
        Py_ssize_t at = 8 * (place->rows[index] * rows->width + start);
        if (memcmp(rows->before + at, rows->after + at, (size_t)(8 * (stop - start)))) {
            return 1;
        }
    }
    return 0;
}

/* Writes one process's numbers; 0 if that went well, else an exception is set. */
static int refill_place(PyObject *numbers, const Place *place, PyObject *cores, const Rows *rows, double elapsed_ns,
                        const Columns *columns, long copies, const Outcome *outcomes, int count) {
    int64_t completed = 0;
    if (place->counters >= 0 && put_rows(numbers, place, cores, rows, elapsed_ns, columns, copies) < 0) {
        return -1;
    }
    for (Py_ssize_t index = 0; index < place->row_count; index++) {
        int64_t ended = row_completed(rows, place->rows[index], columns);
        completed = ended < 0 || completed < 0 ? -1 : completed + ended;
    }
    for (int index = 0; place->executions >= 0 && index < count; index++) {
        PyObject *number = PyLong_FromLongLong(row_outcome(place, rows, outcomes + index, completed));
        if (!number || PyList_SetItem(numbers, place->executions + index, number) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *refill_rows(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    Rows rows;
    Columns columns;
    if (!argument_count_is(given, 10) || read_rows(arguments[3], arguments[4], arguments[5], &rows) < 0 ||
        read_columns(PyTuple_GetItem(arguments[7], 0), &columns) < 0) {
        return NULL;
    }
    PyObject *numbers = arguments[0], *places = arguments[1], *cores = arguments[2], *memory = arguments[9];
    double elapsed_ns = PyFloat_AsDouble(arguments[6]);
    long copies = PyLong_AsLong(PyTuple_GetItem(arguments[7], 1));
    Py_ssize_t start = PyLong_AsSsize_t(PyTuple_GetItem(memory, 0)), stop = PyLong_AsSsize_t(PyTuple_GetItem(memory, 1));
    if (!PyErr_Occurred() && (start < 0 || stop < start || stop > rows.width || PyList_Size(cores) != PyList_Size(places))) {
        PyErr_SetString(PyExc_ValueError, "no such columns or cores");
    }
    Outcome outcomes[MOST_OUTCOMES];
    int outcome_count = PyErr_Occurred() ? -1 : read_outcomes(arguments[8], &columns, &rows, outcomes);
    PyObject *found = PyErr_Occurred() ? NULL : PyList_New(0);
    for (Py_ssize_t index = 0; found && index < PyList_Size(places); index++) {
        Place place;
        PyObject *each = PyList_GetItem(cores, index), *ids = PyTuple_GetItem(each, 0), *own = PyTuple_GetItem(each, 1);
        int failed = !ids || !own || PyTuple_Size(ids) != PyTuple_Size(own) ||
                     read_place(PyList_GetItem(places, index), own, &rows, &columns, &place) < 0 ||
                     refill_place(numbers, &place, ids, &rows, elapsed_ns, &columns, copies, outcomes, outcome_count) < 0;
        if (failed || (rows_hold_other(&place, &rows, start, stop) && append(found, PyLong_FromSsize_t(index)))) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* Appends busy percent and whole idle seconds of the cores of one device, behind the bytes that they hold. */
static int append_device(PyObject *found, const Rows *rows, Py_ssize_t first, Py_ssize_t count, double wall_ns,
                         const Py_ssize_t *columns, PyObject *idle) {
    uint64_t held = 0;
    for (Py_ssize_t row = first; row < first + count; row++) {
        for (Py_ssize_t column = columns[1]; column < columns[2]; column++) {
            held += count_at(rows->after, row * rows->width + column);
        }
    }
    int failed = append(found, PyLong_FromUnsignedLongLong(held));
    for (Py_ssize_t row = first; !failed && row < first + count; row++) {
        PyObject *seconds = PyList_GetItem(idle, row);
        double share = wall_ns > 0.0 ? share_of(1000.0 * row_moved(rows, row, columns[0]), wall_ns) : 0.0;
        failed = !seconds || append(found, PyFloat_FromDouble(100.0 * share)) || PyList_Append(found, seconds) < 0;
    }
    return failed;
}

static PyObject *status_numbers(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    Rows rows;
    Py_ssize_t columns[3], first = 0;
    if (!argument_count_is(given, 7) || read_rows(arguments[0], arguments[1], arguments[2], &rows) < 0) {
        return NULL;
    }
    PyObject *sizes = arguments[3], *idle = arguments[6];
    double wall_ns = PyFloat_AsDouble(arguments[4]);
    for (int index = 0; index < 3; index++) {
        PyObject *column = PyTuple_GetItem(arguments[5], index);
        columns[index] = column ? PyLong_AsSsize_t(column) : -1;
        if (!PyErr_Occurred() && (columns[index] < 0 || columns[index] > rows.width - (index < 2))) {
            PyErr_SetString(PyExc_ValueError, "no such columns");
        }
    }
    PyObject *found = PyErr_Occurred() ? NULL : PyList_New(0);
    for (Py_ssize_t index = 0; found && index < PyTuple_Size(sizes); index++) {
        Py_ssize_t count = PyLong_AsSsize_t(PyTuple_GetItem(sizes, index));
        if (!PyErr_Occurred() && (count < 0 || count > rows.rows - first)) {
            PyErr_SetString(PyExc_ValueError, "no such rows");
        }
        if (PyErr_Occurred() || append_device(found, &rows, first, count, wall_ns, columns, idle)) {
            Py_CLEAR(found);
        }
        first += count;
    }
    return found;
}

static PyObject *moved_rows(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    Rows rows;
    if (!argument_count_is(given, 4) || read_rows(arguments[0], arguments[1], arguments[2], &rows) < 0) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_Size(arguments[3]);
    PyObject *found = count < 0 ? NULL : PyList_New(0);
    for (Py_ssize_t row = 0; found && row < rows.rows; row++) {
        int is_moved = 0;
        for (Py_ssize_t index = 0; found && !is_moved && index < count; index++) {
            Py_ssize_t column = PyLong_AsSsize_t(PyTuple_GetItem(arguments[3], index));
            if (column < 0 || column >= rows.width) {
                PyErr_SetString(PyExc_ValueError, "no such columns");
                Py_CLEAR(found);
            } else {
                is_moved = row_change(&rows, row, column) != 0;
            }
        }
        if (is_moved && append(found, PyLong_FromSsize_t(row))) {
            Py_CLEAR(found);
        }
    }
    return found;
}

static PyObject *put(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    char *positions;
    Py_ssize_t size;
    if (!argument_count_is(given, 3) || PyBytes_AsStringAndSize(arguments[1], &positions, &size) < 0) {
        return NULL;
    }
    for (Py_ssize_t index = 0; index < size / 4; index++) {
        int32_t position;
        memcpy(&position, positions + 4 * index, sizeof position);
        if (PyList_SetItem(arguments[0], position, Py_NewRef(arguments[2])) < 0) {
            return NULL;
        }
    }
    return Py_NewRef(Py_None);
}

static PyObject *utilizations(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 6)) {
        return NULL;
    }
    PyObject *before = arguments[0], *after = arguments[1], *known = arguments[3], *id, *reading;
    double wall_ns = PyFloat_AsDouble(arguments[2]);
    Py_ssize_t busy = PyLong_AsSsize_t(arguments[4]), clock = PyLong_AsSsize_t(arguments[5]), place = 0;
    PyObject *found = PyErr_Occurred() ? NULL : PyDict_New();
    while (found && PyDict_Next(after, &place, &id, &reading)) {
        PyObject *was = PyDict_GetItemWithError(before, id), *flag = PyTuple_GetItem(reading, CORE_CLOCKED);
        Counts old, new;
        int is_clocked = flag ? PyObject_IsTrue(flag) : -1;
        PyObject *share = NULL;
        if (!PyErr_Occurred() && read_counts(reading, &new) == 0 && read_counts(was ? was : reading, &old) == 0) {
            int64_t passed = is_clocked ? change_of(&old, &new, clock) : 0;
            PyObject *last = is_clocked && !passed ? PyDict_GetItemWithError(known, id) : NULL;
            double elapsed_ns = is_clocked ? (double)passed : wall_ns;
            double busy_ns = 1000.0 * moved(&old, &new, busy);
            share = last ? Py_NewRef(last) : PyFloat_FromDouble(elapsed_ns > 0.0 ? share_of(busy_ns, elapsed_ns) : 0.0);
        }
        if (!share || PyErr_Occurred() || PyDict_SetItem(found, id, share) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(share);
    }
    return found;
}

static PyObject *worked(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 3)) {
        return NULL;
    }
    PyObject *before = arguments[0], *columns = arguments[2], *id, *reading;
    Py_ssize_t count = PyTuple_Size(columns), place = 0;
    PyObject *found = count < 0 ? NULL : PyList_New(0);
    while (found && PyDict_Next(arguments[1], &place, &id, &reading)) {
        PyObject *was = PyDict_GetItemWithError(before, id);
        int is_moved = !was;
        Counts old, new;
        int is_other = was && was != reading && read_counts(was, &old) == 0 && read_counts(reading, &new) == 0;
        for (Py_ssize_t index = 0; is_other && !is_moved && index < count; index++) {
            is_moved = change_of(&old, &new, PyLong_AsSsize_t(PyTuple_GetItem(columns, index))) != 0;
        }
        if (PyErr_Occurred() || (is_moved && PyList_Append(found, id) < 0)) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* Bytes that cores hold, of which start and stop are the columns. */
static uint64_t held_by(PyObject *cores, Py_ssize_t start, Py_ssize_t stop) {
    uint64_t total = 0;
    for (Py_ssize_t index = 0; index < PyTuple_Size(cores); index++) {
        Counts counts;
        int is_read = read_counts(PyTuple_GetItem(cores, index), &counts) == 0;
        for (Py_ssize_t column = start; is_read && column < stop; column++) {
            total += counted(&counts, column);
        }
    }
    return total;
}

/* Appends busy percent and whole idle seconds of each core. */
static int append_states(PyObject *found, PyObject *cores, PyObject *shares, PyObject *allocation) {
    for (Py_ssize_t index = 0; index < PyTuple_Size(cores); index++) {
        PyObject *id = PyTuple_GetItem(PyTuple_GetItem(cores, index), CORE_ID);
        PyObject *share = id ? PyDict_GetItemWithError(shares, id) : NULL;
        PyObject *known = id ? PyDict_GetItemWithError(allocation, id) : NULL;
        PyObject *idle = known ? PyTuple_GetItem(known, ALLOCATION_IDLE) : NULL;
        double busy = share ? 100.0 * PyFloat_AsDouble(share) : 0.0, idle_s = idle ? PyFloat_AsDouble(idle) : 0.0;
        if (PyErr_Occurred() || append(found, PyFloat_FromDouble(busy)) || append(found, PyLong_FromDouble(idle_s))) {
            return -1;
        }
    }
    return 0;
}

static PyObject *device_numbers(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 5)) {
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(arguments[3]), stop = PyLong_AsSsize_t(arguments[4]);
    PyObject *found = PyErr_Occurred() ? NULL : PyList_New(0);
    if (found && (append(found, PyLong_FromUnsignedLongLong(held_by(arguments[0], start, stop))) ||
                  append_states(found, arguments[0], arguments[1], arguments[2]) || PyErr_Occurred())) {
        Py_CLEAR(found);
    }
    return found;
}

static PyObject *have_same_cores(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 2)) {
        return NULL;
    }
    PyObject *processes = arguments[0], *others = arguments[1];
    Py_ssize_t count = PyTuple_Size(processes);
    int are_same = PyTuple_Size(others) == count;
    for (Py_ssize_t index = 0; are_same && !PyErr_Occurred() && index < count; index++) {
        PyObject *one = PyTuple_GetItem(processes, index), *other = PyTuple_GetItem(others, index);
        are_same = one == other || (PyObject_RichCompareBool(PyTuple_GetItem(one, PROCESS_PID),
                                                             PyTuple_GetItem(other, PROCESS_PID), Py_EQ) == 1 &&
                                    has_keys_of(PyTuple_GetItem(one, PROCESS_CORES), PyTuple_GetItem(other, PROCESS_CORES)));
    }
    return PyErr_Occurred() ? NULL : PyBool_FromLong(are_same);
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
    if (wanted > MOST_SHARES) {
        return PyErr_SetString(PyExc_ValueError, "too many shares"), NULL;
    }
    Py_ssize_t at[MOST_SHARES], reached = reach(size_before ? before : NULL, after, bounds, arguments[2], at);
    PyObject *found = PyErr_Occurred() ? NULL : PyTuple_New(reached);
    for (Py_ssize_t index = 0; found && index < reached; index++) {
        PyTuple_SetItem(found, index, PyLong_FromSsize_t(at[index]));
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

/* The processor time of a process in ns (man 2 clock_getres, clock_getcpuclockid); below 0 where it cannot be told. */
static int64_t processor_ns(long pid) {
    struct timespec time;
    clockid_t clock = (clockid_t)((~(unsigned int)pid << 3) | 2);
    return clock_gettime(clock, &time) < 0 ? -1 : (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static PyObject *moved_clocks(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 2)) {
        return NULL;
    }
    Py_ssize_t count = PyList_Size(arguments[0]);
    if (count < 0 || !PyByteArray_Check(arguments[1]) || PyByteArray_Size(arguments[1]) != 8 * count) {
        return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_ValueError, "not a clock for each process"), NULL);
    }
    char *clocks = PyByteArray_AsString(arguments[1]);
    PyObject *found = PyList_New(0);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        long pid = PyLong_AsLong(PyList_GetItem(arguments[0], index));
        int64_t now = PyErr_Occurred() ? -1 : processor_ns(pid);
        int is_moved = now < 0 || (uint64_t)now != count_at(clocks, index);
        memcpy(clocks + 8 * index, &now, sizeof now);
        if (PyErr_Occurred() || (is_moved && append(found, PyLong_FromSsize_t(index)))) {
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

/* Reads an open node from its start; below 0 where that fails. */
static Py_ssize_t read_node(int descriptor, char *text) {
    ssize_t length;
    do {
        length = descriptor < 0 ? -1 : pread(descriptor, text, READ_BYTES, 0);
    } while (length < 0 && descriptor >= 0 && errno == EINTR);
    return length;
}

/* Reads a batch of open nodes from their start; lengths are -1 where that failed. */
static void read_batch(const int *descriptors, Py_ssize_t count, char (*texts)[READ_BYTES], Py_ssize_t *lengths) {
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t index = 0; index < count; index++) {
        lengths[index] = read_node(descriptors[index], texts[index]);
    }
    Py_END_ALLOW_THREADS
}

/* A number of fewer than MOST_DIGITS digits on a line of its own, as drivers print it; -1 where it is something else. */
static int64_t plain_count(const char *text, Py_ssize_t length) {
    int64_t value = 0;
    Py_ssize_t index = 0;
    for (; index < length && text[index] >= '0' && text[index] <= '9'; index++) {
        if (index >= MOST_DIGITS - 1) {
            return -1;
        }
        value = 10 * value + (text[index] - '0');
    }
    return index && (index == length || text[index] == '\n') ? value : -1;
}

/* One table of nodes: open files, the numbers that stood there the last time, the largest that each can have, and which
   to read. */
typedef struct {
    const int32_t *descriptors, *positions;
    char *values;
    const char *limits;
    Py_ssize_t size, count;
} Job;

/* Takes a table as the caller describes it; 0 if it can be read, else an exception is set. */
static int read_job(PyObject *told, Job *job) {
    PyObject *descriptors = PyTuple_GetItem(told, 0), *values = PyTuple_GetItem(told, 1);
    PyObject *limits = PyTuple_GetItem(told, 2), *positions = PyTuple_GetItem(told, 3);
    char *known, *wanted;
    Py_ssize_t known_size, wanted_size;
    if (!descriptors || !values || !limits || !positions || PyBytes_AsStringAndSize(limits, &known, &known_size) < 0 ||
        PyBytes_AsStringAndSize(positions, &wanted, &wanted_size) < 0) {
        return -1;
    }
    if (!PyByteArray_Check(descriptors) || !PyByteArray_Check(values)) {
        PyErr_SetString(PyExc_TypeError, "descriptors and values are byte arrays");
        return -1;
    }
    *job = (Job){.descriptors = (const int32_t *)PyByteArray_AsString(descriptors),
                 .positions = (const int32_t *)wanted,
                 .values = PyByteArray_AsString(values),
                 .limits = known,
                 .size = PyByteArray_Size(descriptors) / 4,
                 .count = wanted_size / 4};
    if (PyByteArray_Size(values) < 8 * job->size || known_size < 8 * job->size) {
        PyErr_SetString(PyExc_ValueError, "tables of other lengths");
        return -1;
    }
    for (Py_ssize_t index = 0; index < job->count; index++) {
        if (job->positions[index] < 0 || job->positions[index] >= job->size) {
            PyErr_SetString(PyExc_IndexError, "no such node");
            return -1;
        }
    }
    return 0;
}

/* Takes one node's number: 1 if it is another, 0 if not, 2 if the caller must look at it. */
static int take_count(const Job *job, Py_ssize_t position, int64_t value) {
    uint64_t number = (uint64_t)value;
    if (value < 0) {
        return 2;
    }
    if (number == count_at(job->values, position)) {
        return 0;
    }
    if (number > count_at(job->limits, position)) {
        return 2;
    }
    memcpy(job->values + 8 * position, &number, sizeof number);
    return 1;
}

/* Appends a node that the caller must look at, with what was read of it. */
static int append_other(PyObject *others, Py_ssize_t position, const char *text, Py_ssize_t length) {
    return append(others, length < 0 ? Py_BuildValue("(nO)", position, Py_None)
                                     : Py_BuildValue("(ny#)", position, text, length));
}

/* Takes the texts of a table's nodes from one position on, in order: 0 if that went well. */
static int take_texts(const Job *job, Py_ssize_t begin, Py_ssize_t count, char (*texts)[READ_BYTES],
                      const Py_ssize_t *lengths, PyObject *changed, PyObject *others) {
    int failed = 0;
    for (Py_ssize_t index = 0; !failed && index < count; index++) {
        Py_ssize_t position = job->positions[begin + index];
        int64_t value = lengths[index] > 0 ? plain_count(texts[index], lengths[index]) : -1;
        int outcome = take_count(job, position, value);
        failed = outcome == 1   ? append(changed, PyLong_FromSsize_t(position))
                 : outcome == 2 ? append_other(others, position, texts[index], lengths[index])
                                : 0;
    }
    return failed;
}

/* Reads the nodes of one table: what changed, and what the caller must look at. */
static PyObject *refreshed(const Job *job) {
    PyObject *changed = PyList_New(0), *others = PyList_New(0);
    int failed = !changed || !others;
    for (Py_ssize_t begin = 0; !failed && begin < job->count; begin += BATCH) {
        Py_ssize_t batch = job->count - begin < BATCH ? job->count - begin : BATCH, lengths[BATCH];
        int descriptors[BATCH];
        char texts[BATCH][READ_BYTES];
        for (Py_ssize_t index = 0; index < batch; index++) {
            descriptors[index] = job->descriptors[job->positions[begin + index]];
        }
        read_batch(descriptors, batch, texts, lengths);
        failed = take_texts(job, begin, batch, texts, lengths, changed, others);
    }
    PyObject *found = failed ? NULL : PyTuple_Pack(2, changed, others);
    Py_XDECREF(changed);
    Py_XDECREF(others);
    return found;
}

static PyObject *refresh(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 1)) {
        return NULL;
    }
    Py_ssize_t count = PyList_Size(arguments[0]);
    PyObject *found = count < 0 ? NULL : PyList_New(count);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        Job job;
        PyObject *each = read_job(PyList_GetItem(arguments[0], index), &job) < 0 ? NULL : refreshed(&job);
        if (!each || PyList_SetItem(found, index, each) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* A node that is read: its number, or where it is below 0 the text of another form. */
typedef struct {
    int descriptor;
    int64_t number;
    Py_ssize_t length;
    char *text;
} Found;

/* What is read on a thread of its own, so that a driver that hangs holds up that thread alone. Who has given up waiting
   leaves all of this to the thread. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t is_wanted, is_done;
    Py_ssize_t room, count;
    Found *found;
    int is_reading, is_ending, is_left;
} Line;

/* Who reads: its line, made when it is needed, and the one that hangs. */
typedef struct {
    Line *line, *hanging;
    pid_t process;
} Reader;

static void free_line(Line *line) {
    pthread_cond_destroy(&line->is_wanted);
    pthread_cond_destroy(&line->is_done);
    pthread_mutex_destroy(&line->lock);
    for (Py_ssize_t index = 0; index < line->room; index++) {
        free(line->found[index].text);
    }
    free(line->found);
    free(line);
}

/* Reads a node. Only what is no plain number is kept as text: numbers take less room in the processor's memory. */
static void read_found(Found *found) {
    char text[READ_BYTES];
    found->length = read_node(found->descriptor, text);
    found->number = found->length > 0 ? plain_count(text, found->length) : -1;
    if (found->number >= 0 || found->length < 0) {
        return;
    }
    found->text = found->text ? found->text : malloc(READ_BYTES);
    if (found->text) {
        memcpy(found->text, text, (size_t)found->length);
    } else {
        found->length = -1;
    }
}

/* Reads all that is wanted, as long as somebody waits for it. */
static void read_line(Line *line) {
    for (Py_ssize_t index = 0; index < line->count && !__atomic_load_n(&line->is_ending, __ATOMIC_RELAXED); index++) {
        read_found(line->found + index);
    }
}

/* What the thread of a line does until it is ended. */
static void *work(void *told) {
    Line *line = told;
    pthread_mutex_lock(&line->lock);
    while (!line->is_ending) {
        if (!line->is_reading) {
            pthread_cond_wait(&line->is_wanted, &line->lock);
            continue;
        }
        pthread_mutex_unlock(&line->lock);
        read_line(line);
        pthread_mutex_lock(&line->lock);
        line->is_reading = 0;
        pthread_cond_signal(&line->is_done);
    }
    line->is_reading = 0;
    int is_left = line->is_left;
    line->is_left = 1;
    pthread_mutex_unlock(&line->lock);
    if (is_left) {
        free_line(line);
    }
    return NULL;
}

/* Ends a line's thread; whoever of the two leaves the line last gives its memory back. */
static void leave_line(Line *line) {
    pthread_mutex_lock(&line->lock);
    __atomic_store_n(&line->is_ending, 1, __ATOMIC_RELAXED);
    int is_left = line->is_left;
    line->is_left = 1;
    pthread_cond_signal(&line->is_wanted);
    pthread_mutex_unlock(&line->lock);
    if (is_left) {
        free_line(line);
    }
}

/* Starts a thread that takes no signals; NULL where there can be none. */
static Line *start_line(void) {
    Line *line = calloc(1, sizeof *line);
    pthread_condattr_t clock;
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (!line) {
        return NULL;
    }
    pthread_mutex_init(&line->lock, NULL);
    pthread_cond_init(&line->is_wanted, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&line->is_done, &clock);
    pthread_condattr_destroy(&clock);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, READER_STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attributes, work, line);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed) {
        free_line(line);
        return NULL;
    }
    return line;
}

/* Makes room for so many nodes; below 0 where there is none. */
static int make_room(Line *line, Py_ssize_t count) {
    if (count <= line->room) {
        return 0;
    }
    Found *found = realloc(line->found, (size_t)count * sizeof *found);
    if (!found) {
        return -1;
    }
    memset(found + line->room, 0, (size_t)(count - line->room) * sizeof *found);
    line->found = found;
    line->room = count;
    return 0;
}

/* Lets a line read: 1 when it has, 0 where it has not by then and is given up. */
static int have_read(Line *line, double timeout_s) {
    struct timespec until;
    int outcome = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long long ns = until.tv_nsec + (long long)(timeout_s * 1e9);
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&line->lock);
    line->is_reading = 1;
    pthread_cond_signal(&line->is_wanted);
    while (line->is_reading && outcome == 0) {
        outcome = pthread_cond_timedwait(&line->is_done, &line->lock, &until);
    }
    int has_read = !line->is_reading;
    if (!has_read) {
        __atomic_store_n(&line->is_ending, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&line->lock);
    return has_read;
}

#define READER_NAME "neuron_monitor.reader"

static Reader *reader_in(PyObject *capsule) { return PyCapsule_GetPointer(capsule, READER_NAME); }

/* Whether a line that was given up still hangs; one that does not is left. */
static int hangs(Reader *reader) {
    if (!reader->hanging) {
        return 0;
    }
    pthread_mutex_lock(&reader->hanging->lock);
    int is_reading = reader->hanging->is_reading;
    pthread_mutex_unlock(&reader->hanging->lock);
    if (!is_reading) {
        leave_line(reader->hanging);
        reader->hanging = NULL;
    }
    return is_reading;
}

/* A process that was forked has none of the threads of the one before, whose lines it lets be. */
static void follow_fork(Reader *reader) {
    if (reader->process != getpid()) {
        *reader = (Reader){.process = getpid()};
    }
}

static void free_reader(PyObject *capsule) {
    Reader *reader = reader_in(capsule);
    follow_fork(reader);
    if (reader->line) {
        leave_line(reader->line);
    }
    if (reader->hanging) {
        leave_line(reader->hanging);
    }
    free(reader);
}

static PyObject *reader(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 0)) {
        return NULL;
    }
    Reader *made = calloc(1, sizeof *made);
    if (!made) {
        return PyErr_NoMemory();
    }
    made->process = getpid();
    PyObject *capsule = PyCapsule_New(made, READER_NAME, free_reader);
    if (!capsule) {
        free(made);
    }
    return capsule;
}

static PyObject *is_reading(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    Reader *reader = argument_count_is(given, 1) ? reader_in(arguments[0]) : NULL;
    if (!reader) {
        return NULL;
    }
    follow_fork(reader);
    return PyBool_FromLong(hangs(reader));
}

/* Takes what was read of a table. */
static PyObject *taken(const Job *job, const Found *found, int only_others) {
    PyObject *changed = PyList_New(0), *others = PyList_New(0);
    int failed = !changed || !others;
    for (Py_ssize_t index = 0; !failed && index < job->count; index++) {
        Py_ssize_t position = job->positions[index], length = found[index].length;
        int outcome = take_count(job, position, found[index].number);
        if (outcome == 2 && found[index].number >= 0) {
            char text[READ_BYTES];
            length = snprintf(text, sizeof text, "%lld\n", (long long)found[index].number);
            failed = append_other(others, position, text, length);
        } else if (outcome == 2) {
            failed = append_other(others, position, found[index].text, length);
        } else if (outcome == 1 && !only_others) {
            failed = append(changed, PyLong_FromSsize_t(position));
        }
    }
    PyObject *each = failed ? NULL : PyTuple_Pack(2, changed, others);
    Py_XDECREF(changed);
    Py_XDECREF(others);
    return each;
}

/* Tells a line the nodes of all tables; below 0 where an exception is set. */
static int want_tables(PyObject *tables, Line *line) {
    line->count = 0;
    for (Py_ssize_t index = 0; index < PyList_Size(tables); index++) {
        Job job;
        if (read_job(PyList_GetItem(tables, index), &job) < 0) {
            return -1;
        }
        if (make_room(line, line->count + job.count) < 0) {
            return PyErr_NoMemory(), -1;
        }
        for (Py_ssize_t place = 0; place < job.count; place++) {
            line->found[line->count++].descriptor = job.descriptors[job.positions[place]];
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Takes what a line has read of all tables. */
static PyObject *tables_taken(PyObject *tables, const Line *line, int only_others) {
    PyObject *found = PyList_New(0);
    Py_ssize_t at = 0;
    for (Py_ssize_t index = 0; found && index < PyList_Size(tables); index++) {
        Job job;
        int is_known = read_job(PyList_GetItem(tables, index), &job) == 0;
        if (is_known && job.count > line->count - at) {
            PyErr_SetString(PyExc_ValueError, "other tables than were read");
        }
        if (PyErr_Occurred() || append(found, taken(&job, line->found + at, only_others))) {
            Py_CLEAR(found);
        }
        at += job.count;
    }
    return found;
}

static PyObject *refresh_within(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    Reader *reader = argument_count_is(given, 4) ? reader_in(arguments[0]) : NULL;
    double timeout_s = reader ? PyFloat_AsDouble(arguments[2]) : 0.0;
    int only_others = reader ? PyObject_IsTrue(arguments[3]) : 0;
    if (!reader || PyErr_Occurred()) {
        return NULL;
    }
    follow_fork(reader);
    if (hangs(reader)) {
        return Py_NewRef(Py_None);
    }
    Line *line = reader->line ? reader->line : start_line();
    if (!line) {
        return PyErr_SetString(PyExc_OSError, "no thread can be started"), NULL;
    }
    reader->line = line;
    if (want_tables(arguments[1], line) < 0) {
        return NULL;
    }
    int has_read;
    Py_BEGIN_ALLOW_THREADS
    has_read = have_read(line, timeout_s);
    Py_END_ALLOW_THREADS
    if (!has_read) {
        reader->line = NULL;
        reader->hanging = line;
        return Py_NewRef(Py_None);
    }
    return tables_taken(arguments[1], line, only_others);
}

static PyObject *removed(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 1)) {
        return NULL;
    }
    Py_ssize_t count = PyList_Size(arguments[0]);
    PyObject *found = count < 0 ? NULL : PyList_New(0);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        long descriptor = PyLong_AsLong(PyList_GetItem(arguments[0], index));
        struct stat entry;
        int is_removed = descriptor >= 0 && (fstat((int)descriptor, &entry) < 0 || entry.st_nlink == 0);
        if (PyErr_Occurred() || (is_removed && append(found, PyLong_FromSsize_t(index)))) {
            Py_CLEAR(found);
        }
    }
    return found;
}

static PyObject *descriptor_counts(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    const char *folder = argument_count_is(given, 2) ? PyUnicode_AsUTF8AndSize(arguments[0], NULL) : NULL;
    Py_ssize_t count = folder ? PyList_Size(arguments[1]) : -1;
    PyObject *found = count < 0 ? NULL : PyList_New(count);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        char path[PATH_BYTES];
        struct stat entry;
        long pid = PyLong_AsLong(PyList_GetItem(arguments[1], index));
        int length = snprintf(path, sizeof path, "%s/%ld/fd", folder, pid);
        int is_there = length > 0 && (size_t)length < sizeof path && stat(path, &entry) == 0;
        PyObject *each = PyErr_Occurred() ? NULL : PyLong_FromLongLong(is_there ? (long long)entry.st_size : -1);
        if (!each || PyList_SetItem(found, index, each) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

/* Whether all of these links, by name, lead where they did; below 0 where an exception is set. */
static int lead_on(PyObject *links) {
    PyObject *link, *target;
    Py_ssize_t place = 0, size;
    char found[PATH_BYTES];
    if (!PyDict_Check(links)) {
        PyErr_SetString(PyExc_TypeError, "links are a dictionary");
        return -1;
    }
    while (PyDict_Next(links, &place, &link, &target)) {
        const char *name = PyUnicode_AsUTF8AndSize(link, NULL), *told = PyUnicode_AsUTF8AndSize(target, &size);
        if (!name || !told) {
            return -1;
        }
        if (size > PATH_BYTES || readlink(name, found, sizeof found) != size || memcmp(found, told, (size_t)size)) {
            return 0;
        }
    }
    return 1;
}

static PyObject *leading_on(PyObject *self, PyObject *const *arguments, Py_ssize_t given) {
    if (!argument_count_is(given, 1)) {
        return NULL;
    }
    Py_ssize_t count = PyList_Size(arguments[0]);
    PyObject *found = count < 0 ? NULL : PyList_New(0);
    for (Py_ssize_t index = 0; found && index < count; index++) {
        int leads = lead_on(PyList_GetItem(arguments[0], index));
        if (leads < 0 || (leads && append(found, PyLong_FromSsize_t(index)))) {
            Py_CLEAR(found);
        }
    }
    return found;
}

#define KERNEL(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    KERNEL(words),      KERNEL(table),        KERNEL(form),        KERNEL(filled), KERNEL(core_rates),
    KERNEL(reached_at), KERNEL(refresh), KERNEL(added),       KERNEL(read_page),
    KERNEL(processor_ticks), KERNEL(parse_count), KERNEL(window_numbers), KERNEL(followed),
    KERNEL(with_cores), KERNEL(refill),       KERNEL(utilizations), KERNEL(worked), KERNEL(device_numbers),
    KERNEL(have_same_cores), KERNEL(removed), KERNEL(told), KERNEL(refill_rows), KERNEL(status_numbers),
    KERNEL(moved_rows), KERNEL(put),          KERNEL(reader),      KERNEL(is_reading), KERNEL(refresh_within),
    KERNEL(moved_clocks),    KERNEL(leading_on),    KERNEL(descriptor_counts),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernels", NULL, -1, methods, NULL, NULL, NULL, NULL};

/* Of what this was built: a checksum of the source, by which an old build is told. */
#ifndef SOURCE
#define SOURCE 0UL
#endif

PyMODINIT_FUNC PyInit__kernels(void) {
    PyObject *module = PyModule_Create(&definition), *source = PyLong_FromUnsignedLong(SOURCE);
    if (module && source && PyModule_AddObjectRef(module, "_source", source) < 0) {
        Py_CLEAR(module);
    }
    Py_XDECREF(source);
    return module;
}
