// Posts the same body to an HTTP service again and again over kept-alive connections, one at a time
// on each, and checks every answer for a text. Prints one JSON object.
//
//   post_load PORT --path PATH --body FILE --expect TEXT [--token FILE] [--count N] [--connections N] [--core N] [--pid PID]
#include "http.h"
#include "proc.h"

#define READ_BYTES (256 * 1024)
#define CONNECTIONS_MAX 256
#define BODY_MAX (1024 * 1024)

struct options {
    int port, core, connections;
    const char *path, *body, *expect, *token;
    uint32_t count;
    pid_t pid;
};

struct lane {
    int fd;
    struct bytes in;
    uint64_t begin;
};

static size_t read_file(const char *path, char *into, size_t most) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, into, most - 1);
    if (n < 0) die(path);
    close(fd);
    into[n] = 0;
    return (size_t)n;
}

// The whole request, which is always the same.
static struct bytes request(const struct options *o) {
    static char body[BODY_MAX], token[256];
    size_t len = read_file(o->body, body, sizeof body);
    char head[1024];
    if (o->token) {
        read_file(o->token, token, sizeof token);
        token[strcspn(token, "\r\n")] = 0;
    }
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                     "%s%s%sContent-Length: %zu\r\n\r\n",
                     o->path, o->port, o->token ? "Authorization: Bearer " : "", token, o->token ? "\r\n" : "", len);
    struct bytes out = {0};
    bytes_put(&out, head, (size_t)n);
    bytes_put(&out, body, len);
    return out;
}

static void post(struct lane *l, const struct bytes *what) {
    l->begin = now_ns();
    write_all(l->fd, what->data, what->end);
}

static struct options parse(int argc, char **argv) {
    static const char text[] = "post_load PORT --path PATH --body FILE --expect TEXT [--token FILE] [--count N] "
                               "[--connections N] [--core N] [--pid PID]";
    struct options o = {.core = -1, .connections = 1, .count = 1000};
    if (argc < 2) usage(text);
    o.port = atoi(argv[1]);
    for (int i = 2; i + 1 < argc; i += 2) {
        char *value = argv[i + 1];
        if (strcmp(argv[i], "--path") == 0) o.path = value;
        else if (strcmp(argv[i], "--body") == 0) o.body = value;
        else if (strcmp(argv[i], "--expect") == 0) o.expect = value;
        else if (strcmp(argv[i], "--token") == 0) o.token = value;
        else if (strcmp(argv[i], "--count") == 0) o.count = (uint32_t)atol(value);
        else if (strcmp(argv[i], "--connections") == 0) o.connections = atoi(value);
        else if (strcmp(argv[i], "--core") == 0) o.core = atoi(value);
        else if (strcmp(argv[i], "--pid") == 0) o.pid = (pid_t)atoi(value);
        else usage(text);
    }
    bool whole = o.path && o.body && o.expect;
    if (!whole || o.connections < 1 || o.connections > CONNECTIONS_MAX || o.count < (uint32_t)o.connections) usage(text);
    return o;
}

int main(int argc, char **argv) {
    struct options o = parse(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (o.core >= 0) stay_on(o.core);
    static struct lane lanes[CONNECTIONS_MAX];
    struct bytes what = request(&o);
    uint64_t *ns = calloc(o.count, sizeof *ns), begin = now_ns(), cpu = cpu_ns(o.pid), last = begin;
    uint32_t sent = 0, got = 0, good = 0;
    int ep = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < o.connections; i++, sent++) {
        lanes[i].fd = connect_loopback(o.port);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &lanes[i]};
        epoll_ctl(ep, EPOLL_CTL_ADD, lanes[i].fd, &event);
        post(&lanes[i], &what);
    }
    while (got < sent) {
        struct epoll_event ready[64];
        int n = epoll_wait(ep, ready, 64, STALL_S * 1000);
        if (n <= 0) break;
        for (int i = 0; i < n; i++) {
            struct lane *l = ready[i].data.ptr;
            if (bytes_fill(&l->in, l->fd, READ_BYTES) <= 0) {
                fprintf(stderr, "bench: the service hung up\n");
                return 1;
            }
            struct http h = http_read(bytes_head(&l->in), bytes_len(&l->in));
            if (h.len == 0) continue;
            last = now_ns();
            ns[got++] = last - l->begin;
            good += memmem(h.body.at, h.body.len, o.expect, strlen(o.expect)) != NULL;
            l->in.start += h.len;
            if (sent < o.count) {
                sent++;
                post(l, &what);
            }
        }
    }
    double seconds = (double)(last - begin) / 1e9, cpu_us = (double)(cpu_ns(o.pid) - cpu) / 1e3;
    printf("{\"mode\":\"post\",\"connections\":%d,\"per_s\":%.1f,", o.connections, seconds > 0 ? got / seconds : 0);
    printf("\"p50_us\":%.2f,\"p99_us\":%.2f,", percentile_us(ns, got, 0.5), percentile_us(ns, got, 0.99));
    printf("\"cpu_us\":%.3f,\"rss_kb\":%ld,\"peak_kb\":%ld", got ? cpu_us / got : 0, status_kb(o.pid, "VmRSS"), status_kb(o.pid, "VmHWM"));
    printf(",\"sent\":%u,\"lost\":%u,\"twice\":0,\"unknown\":0,\"failed\":%u}\n", sent, sent - got, got - good);
    return 0;
}
