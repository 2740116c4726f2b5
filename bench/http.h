// HTTP/1.1 as far as the bench needs it: where a message ends, its body, loopback sockets.
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include "bench.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static inline struct sockaddr_in loopback(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static inline void set_nodelay(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Listens on a free port and says so in the words that the driver waits for.
static inline int listen_loopback(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in a = loopback(0);
    socklen_t len = sizeof a;
    if (fd < 0 || bind(fd, (void *)&a, len) || listen(fd, 512) || getsockname(fd, (void *)&a, &len)) die("listen");
    fprintf(stderr, "bench: listening on http://127.0.0.1:%d/mcp\n", ntohs(a.sin_port));
    return fd;
}

// Connects. A read that gets nothing for `STALL_S` fails.
#define STALL_S 5
static inline int connect_loopback(int port) {
    struct timeval stall = {STALL_S, 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = loopback(port);
    if (fd < 0 || connect(fd, (void *)&a, sizeof a)) die("connect");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof stall);
    set_nodelay(fd);
    return fd;
}

// A whole HTTP message at the start of a buffer. `len` is zero until all of it has arrived.
struct http {
    struct span first, head, body;
    size_t len;
};

static inline struct span http_field(struct span head, const char *name) {
    const char *p = head.at, *end = head.at + head.len;
    size_t len = strlen(name);
    while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
        p++;
        if ((size_t)(end - p) <= len || strncasecmp(p, name, len) != 0 || p[len] != ':') continue;
        const char *value = skip_space(p + len + 1, end), *stop = memchr(value, '\r', (size_t)(end - value));
        return (struct span){value, stop ? (size_t)(stop - value) : 0};
    }
    return (struct span){0};
}

// Joins the chunks in place, so the body is one span. Nothing is touched until the last chunk is in.
static inline bool join_chunks(char *from, char *end, struct http *h) {
    for (int pass = 0; pass < 2; pass++) {
        char *p = from, *to = from;
        for (;;) {
            char *eol = memmem(p, (size_t)(end - p), "\r\n", 2);
            if (!eol) return false;
            size_t size = strtoul(p, NULL, 16);
            if ((size_t)(end - eol) < size + 4) return false;
            if (pass == 1) memmove(to, eol + 2, size);
            to += size;
            p = eol + 2 + size + 2;
            if (size == 0) break;
        }
        if (pass == 1) h->body = (struct span){from, (size_t)(to - from)};
        h->len = (size_t)(p - h->first.at);
    }
    return true;
}

static inline struct http http_read(char *data, size_t len) {
    struct http h = {0};
    char *blank = memmem(data, len, "\r\n\r\n", 4);
    if (!blank) return h;
    char *eol = memchr(data, '\r', len), *body = blank + 4;
    h.first = (struct span){data, (size_t)(eol - data)};
    h.head = (struct span){data, (size_t)(body - data)};
    struct span coding = http_field(h.head, "transfer-encoding");
    if (coding.len == 7 && strncasecmp(coding.at, "chunked", 7) == 0) {
        if (!join_chunks(body, data + len, &h)) h.len = 0;
        return h;
    }
    struct span length = http_field(h.head, "content-length");
    size_t size = length.len ? strtoul(length.at, NULL, 10) : 0;
    if ((size_t)(data + len - body) < size) return h;
    h.body = (struct span){body, size};
    h.len = h.head.len + size;
    return h;
}

#endif
