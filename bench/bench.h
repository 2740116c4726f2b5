// What the bench programs share: the clock, exact I/O, a scan of one JSON-RPC message, the reply
// the echo servers give, and percentiles. Header only, so that each program is one gcc call.
#ifndef BENCH_H
#define BENCH_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROTOCOL "2025-06-18"

static inline void die(const char *what) {
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(3);
}

static inline void usage(const char *text) {
    fprintf(stderr, "usage: %s\n", text);
    exit(64);
}

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void sleep_ms(long ms) {
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static inline void set_nonblocking(int fd) {
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) die("fcntl");
}

// A byte queue: filled at the end, emptied at the start, moved back only when it must grow.
struct bytes {
    char *data;
    size_t start, end, room;
};

static inline size_t bytes_len(const struct bytes *b) { return b->end - b->start; }
static inline char *bytes_head(struct bytes *b) { return b->data + b->start; }

static inline char *bytes_reserve(struct bytes *b, size_t more) {
    if (b->start == b->end) b->start = b->end = 0;
    if (b->room - b->end >= more) return b->data + b->end;
    if (b->start > 0) {
        memmove(b->data, b->data + b->start, bytes_len(b));
        b->end -= b->start;
        b->start = 0;
    }
    if (b->room - b->end < more) {
        b->room = (b->end + more) * 2;
        b->data = realloc(b->data, b->room);
        if (!b->data) die("memory");
    }
    return b->data + b->end;
}

static inline void bytes_put(struct bytes *b, const void *from, size_t len) {
    memcpy(bytes_reserve(b, len), from, len);
    b->end += len;
}

static inline void bytes_text(struct bytes *b, const char *text) { bytes_put(b, text, strlen(text)); }

// Reads once. Gives read(2)'s answer.
static inline ssize_t bytes_fill(struct bytes *b, int fd, size_t most) {
    ssize_t n = read(fd, bytes_reserve(b, most), most);
    if (n > 0) b->end += (size_t)n;
    return n;
}

static inline void write_all(int fd, const char *data, size_t len) {
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = {fd, POLLOUT, 0};
            poll(&p, 1, -1);
            continue;
        }
        if (n < 0) die("write");
        data += n;
        len -= (size_t)n;
    }
}

// A piece of a message, as it stands on the wire.
struct span {
    const char *at;
    size_t len;
};

static inline bool span_is(struct span s, const char *text) {
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

struct envelope {
    struct span id, method, result;
};

// Just past the string whose opening quote is at `p`.
static inline const char *skip_string(const char *p, const char *end) {
    for (p++; (p = memchr(p, '"', (size_t)(end - p))) != NULL; p++) {
        const char *slash = p;
        while (slash[-1] == '\\') slash--;
        if ((p - slash) % 2 == 0) return p + 1;
    }
    return end;
}

static inline const char *skip_value(const char *p, const char *end) {
    int depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            if (depth == 0) return p;
            continue;
        }
        if (*p == '{' || *p == '[') depth++;
        if (*p == '}' || *p == ']') depth--;
        if (depth < 0) return p;
        if (depth == 0 && (*p == '}' || *p == ']')) return p + 1;
        if (depth == 0 && *p == ',') return p;
        p++;
    }
    return end;
}

static inline const char *skip_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')) p++;
    return p;
}

// The members of the outermost object that matter here, wherever they stand: proxies reorder keys.
static inline struct envelope read_envelope(const char *p, const char *end) {
    struct envelope e = {{0}, {0}, {0}};
    p = skip_space(p, end);
    if (p >= end || *p != '{') return e;
    p++;
    while (p < end) {
        while (p < end && *p != '"' && *p != '}') p++;
        if (p >= end || *p == '}') break;
        const char *key = p + 1;
        p = skip_string(p, end);
        struct span name = {key, (size_t)(p - key) - 1};
        while (p < end && *p != ':') p++;
        const char *value = skip_space(p + 1, end);
        p = skip_value(value, end);
        struct span found = {value, (size_t)(p - value)};
        if (span_is(name, "id")) e.id = found;
        else if (span_is(name, "method")) e.method = found;
        else if (span_is(name, "result")) e.result = found;
    }
    return e;
}

// The raw `text` argument of a call, between its quotes. The load generators send no escapes.
static inline struct span call_text(const char *line, size_t len) {
    static const char key[] = "\"text\":";
    const char *p = len ? memmem(line, len, key, sizeof key - 1) : NULL;
    if (!p) return (struct span){"", 0};
    const char *end = line + len;
    p = skip_space(p + sizeof key - 1, end);
    if (p >= end || *p != '"') return (struct span){"", 0};
    const char *close = skip_string(p, end);
    return (struct span){p + 1, (size_t)(close - p) - 2};
}

static inline void put_result(struct bytes *out, const char *line, size_t len, struct span method) {
    if (span_is(method, "\"tools/call\"")) {
        struct span text = call_text(line, len);
        bytes_text(out, "{\"content\":[{\"type\":\"text\",\"text\":\"");
        bytes_put(out, text.at, text.len);
        bytes_text(out, "\"}],\"isError\":false}");
    } else if (span_is(method, "\"initialize\"")) {
        bytes_text(out, "{\"protocolVersion\":\"" PROTOCOL "\",\"capabilities\":{\"tools\":{}},"
                        "\"serverInfo\":{\"name\":\"bench-echo\",\"version\":\"1\"}}");
    } else if (span_is(method, "\"tools/list\"")) {
        bytes_text(out, "{\"tools\":[{\"name\":\"echo\",\"description\":\"Gives its text back.\",\"inputSchema\":"
                        "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}}}]}");
    } else {
        bytes_text(out, "{}");
    }
}

// Appends the reply to one message; nothing for a notification. Says whether it was a tool call.
static inline bool put_reply(struct bytes *out, const char *line, size_t len) {
    struct envelope e = read_envelope(line, line + len);
    if (e.id.len == 0 || e.method.len == 0) return false;
    bytes_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    bytes_put(out, e.id.at, e.id.len);
    bytes_text(out, ",\"result\":");
    put_result(out, line, len, e.method);
    bytes_text(out, "}");
    return span_is(e.method, "\"tools/call\"");
}

// Ids have a fixed width, so that a message is a template with seven digits to fill in. A tape was
// recorded by a client with other ids than those that the load generators use.
#define ID_FIRST 1000000u
#define ID_TAPE 5000000u
#define ID_DIGITS 7
#define CALLS_MAX 4000000u

static inline void put_id(char *at, uint32_t id) {
    for (int i = ID_DIGITS - 1; i >= 0; i--, id /= 10) at[i] = (char)('0' + id % 10);
}

// A call or its answer, and where its id and its text stand.
struct call {
    char *data;
    size_t len, id_at, text_at;
};

static inline struct call call_at(char *data, size_t len) {
    struct span id = read_envelope(data, data + len).id, text = call_text(data, len);
    return (struct call){data, len, (size_t)(id.at - data), (size_t)(text.at - data)};
}

static inline struct call make_call(size_t text_len, const char *tail) {
    struct bytes b = {0};
    bytes_text(&b, "{\"jsonrpc\":\"2.0\",\"id\":0000000,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"");
    memset(bytes_reserve(&b, text_len), 'x', text_len);
    b.end += text_len;
    bytes_text(&b, "\"}}}");
    bytes_text(&b, tail);
    return call_at(b.data, b.end);
}

// Call n asks for a text that starts with its number, so that no two calls are the same.
static inline void number_call(struct call *call, uint32_t n) { put_id(call->data + call->text_at, n); }

#define INITIALIZE \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"" PROTOCOL \
    "\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench-load\",\"version\":\"1\"}}}"
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

// What became of the calls: each must be answered once, with a result, with its text whole. Where
// they are numbered, the text must be that of the call.
struct tally {
    uint8_t *seen;
    uint32_t sent, once, twice, unknown, failed;
    bool numbered;
};

// `most` ids are known, answered or not.
static inline void tally_reply(struct tally *t, const char *line, size_t len, size_t text_len, uint32_t most) {
    struct envelope e = read_envelope(line, line + len);
    if (e.id.len == 0 || e.method.len > 0) return;
    uint32_t id = (uint32_t)strtoul(e.id.at, NULL, 10) - ID_FIRST;
    if (e.id.len != ID_DIGITS || id >= most) t->unknown++;
    else if (t->seen[id]++) t->twice++;
    else t->once++;
    struct span text = call_text(e.result.at, e.result.len);
    char number[ID_DIGITS];
    put_id(number, id);
    if (text.len != text_len || (t->numbered && memcmp(text.at, number, ID_DIGITS) != 0)) t->failed++;
}

static inline void print_tally(const struct tally *t) {
    printf(",\"sent\":%u,\"lost\":%u,\"twice\":%u,\"unknown\":%u,\"failed\":%u", t->sent, t->sent - t->once, t->twice,
           t->unknown, t->failed);
}

static inline int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Sorts the samples; `share` 0.5 is the median.
static inline double percentile_us(uint64_t *ns, size_t count, double share) {
    if (count == 0) return 0;
    qsort(ns, count, sizeof *ns, compare_u64);
    size_t i = (size_t)((double)count * share);
    return (double)ns[i < count ? i : count - 1] / 1000.0;
}

#endif
