// The HTTP load generator: calls a Streamable HTTP MCP server over kept-alive connections, one call
// at a time on each, and checks every reply. Prints one JSON object.
//
//   http_load PORT [--path /mcp] [--count N] [--connections N] [--text BYTES] [--core N] [--seconds-max S] [--pid PID]
//                  [--numbered 1] [--sessions 1]
//
// With --numbered each call asks for its own text, as a tape written by `tape` has it; with
// --sessions each connection is a client with a session of its own, otherwise they share one.
// With --pid, the memory and processor time of that process (the proxy) are read from /proc.
#include "http.h"
#include "proc.h"

#define READ_BYTES (256 * 1024)
#define CONNECTIONS_MAX 256

struct options {
    int port, core, connections;
    const char *path;
    uint32_t count;
    size_t text_len;
    bool numbered, sessions;
    double seconds_max;
    pid_t pid;
};

struct lane {
    int fd;
    struct bytes in;
    uint64_t begin;
    char session[256];
};

static void post(struct lane *l, const struct options *o, const char *body, size_t len) {
    static struct bytes out;
    char head[768];
    out.start = out.end = 0;
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                     "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: " PROTOCOL "\r\n"
                     "%sContent-Length: %zu\r\n\r\n",
                     o->path, o->port, l->session, len);
    bytes_put(&out, head, (size_t)n);
    bytes_put(&out, body, len);
    l->begin = now_ns();
    write_all(l->fd, out.data, out.end);
}

// Reads until a whole answer is there and leaves it at the head of the buffer. Empty after a stall.
static struct http await(struct lane *l) {
    struct http h = {0};
    while (h.len == 0) {
        ssize_t n = bytes_fill(&l->in, l->fd, READ_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        h = http_read(bytes_head(&l->in), bytes_len(&l->in));
    }
    return h;
}

static bool open_session(struct lane *l, const struct options *o) {
    post(l, o, INITIALIZE, sizeof INITIALIZE - 1);
    struct http h = await(l);
    if (h.len == 0 || !memmem(h.body.at, h.body.len, "\"result\"", 8)) return false;
    struct span id = http_field(h.head, "mcp-session-id");
    if (id.len) snprintf(l->session, sizeof l->session, "Mcp-Session-Id: %.*s\r\n", (int)id.len, id.at);
    l->in.start += h.len;
    post(l, o, INITIALIZED, sizeof INITIALIZED - 1);
    h = await(l);
    l->in.start += h.len;
    return h.len > 0;
}

// The JSON of an answer: the body, or the data of an event.
static struct span answer_json(struct http h) {
    struct span type = http_field(h.head, "content-type");
    if (!memmem(type.at ? type.at : "", type.len, "event-stream", 12)) return h.body;
    const char *at = memmem(h.body.at, h.body.len, "data:", 5), *end = h.body.at + h.body.len;
    for (; at; at = memmem(at, (size_t)(end - at), "data:", 5)) {
        at = skip_space(at + 5, end);
        if (at < end && *at == '{') return (struct span){at, (size_t)(end - at)};
    }
    return (struct span){h.body.at, 0};
}

struct result {
    struct tally tally;
    uint64_t *ns;
    double seconds;
};

static void send_next(struct lane *l, const struct options *o, struct call *call, struct tally *t) {
    put_id(call->data + call->id_at, ID_FIRST + t->sent);
    if (o->numbered) number_call(call, t->sent);
    t->sent++;
    post(l, o, call->data, call->len);
}

static struct result run(struct lane *lanes, int ep, const struct options *o) {
    struct call call = make_call(o->text_len, "");
    struct result r = {.tally = {.seen = calloc(o->count + 1, 1), .numbered = o->numbered}};
    struct tally *t = &r.tally;
    r.ns = calloc(o->count, sizeof *r.ns);
    uint64_t begin = now_ns(), last = begin, deadline = begin + (uint64_t)(o->seconds_max * 1e9);
    int open = o->connections;
    for (int i = 0; i < open; i++) send_next(&lanes[i], o, &call, t);
    while (t->once < t->sent && open > 0) {
        struct epoll_event ready[64];
        int n = epoll_wait(ep, ready, 64, STALL_S * 1000);
        if (n <= 0) break;
        for (int i = 0; i < n; i++) {
            struct lane *l = ready[i].data.ptr;
            struct http h = await(l);
            last = now_ns();
            if (h.len == 0) {
                epoll_ctl(ep, EPOLL_CTL_DEL, l->fd, NULL);
                open--;
                continue;
            }
            struct span json = answer_json(h);
            uint32_t before = t->once;
            tally_reply(t, json.at, json.len, o->text_len, t->sent);
            if (t->once > before) r.ns[before] = last - l->begin;
            l->in.start += h.len;
            if (t->sent < o->count && last < deadline) send_next(l, o, &call, t);
        }
    }
    r.seconds = (double)(last - begin) / 1e9;
    return r;
}

static struct options parse(int argc, char **argv) {
    static const char text[] = "http_load PORT [--path /mcp] [--count N] [--connections N] [--text BYTES] [--core N] "
                               "[--seconds-max S] [--pid PID] [--numbered 1] [--sessions 1]";
    struct options o = {.core = -1, .connections = 1, .path = "/mcp", .count = 1000, .text_len = 16, .seconds_max = 60};
    if (argc < 2) usage(text);
    o.port = atoi(argv[1]);
    for (int i = 2; i + 1 < argc; i += 2) {
        double value = atof(argv[i + 1]);
        if (strcmp(argv[i], "--path") == 0) o.path = argv[i + 1];
        else if (strcmp(argv[i], "--count") == 0) o.count = (uint32_t)value;
        else if (strcmp(argv[i], "--connections") == 0) o.connections = (int)value;
        else if (strcmp(argv[i], "--text") == 0) o.text_len = (size_t)value;
        else if (strcmp(argv[i], "--core") == 0) o.core = (int)value;
        else if (strcmp(argv[i], "--seconds-max") == 0) o.seconds_max = value;
        else if (strcmp(argv[i], "--pid") == 0) o.pid = (pid_t)value;
        else if (strcmp(argv[i], "--numbered") == 0) o.numbered = value != 0;
        else if (strcmp(argv[i], "--sessions") == 0) o.sessions = value != 0;
        else usage(text);
    }
    if (o.connections < 1 || o.connections > CONNECTIONS_MAX || o.count < (uint32_t)o.connections) usage(text);
    return o;
}

int main(int argc, char **argv) {
    struct options o = parse(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (o.core >= 0) stay_on(o.core);
    static struct lane lanes[CONNECTIONS_MAX];
    int ep = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < o.connections; i++) {
        lanes[i].fd = connect_loopback(o.port);
        bool opens = i == 0 || o.sessions;
        if (!opens) memcpy(lanes[i].session, lanes[0].session, sizeof lanes[0].session);
        if (opens && !open_session(&lanes[i], &o)) {
            fprintf(stderr, "bench: no reply to initialize\n");
            return 1;
        }
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &lanes[i]};
        epoll_ctl(ep, EPOLL_CTL_ADD, lanes[i].fd, &event);
    }
    uint64_t cpu = cpu_ns(o.pid);
    struct result r = run(lanes, ep, &o);
    double cpu_us = (double)(cpu_ns(o.pid) - cpu) / 1e3;
    uint32_t once = r.tally.once;
    printf("{\"mode\":\"http\",\"connections\":%d,\"per_s\":%.1f,", o.connections, r.seconds > 0 ? once / r.seconds : 0);
    printf("\"p50_us\":%.2f,", percentile_us(r.ns, once, 0.5));
    printf("\"p90_us\":%.2f,", percentile_us(r.ns, once, 0.9));
    printf("\"p99_us\":%.2f,", percentile_us(r.ns, once, 0.99));
    printf("\"cpu_us\":%.3f,\"rss_kb\":%ld,\"peak_kb\":%ld", once ? cpu_us / once : 0, status_kb(o.pid, "VmRSS"),
           status_kb(o.pid, "VmHWM"));
    print_tally(&r.tally);
    puts("}");
    return 0;
}
