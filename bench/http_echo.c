// A Streamable HTTP MCP server that answers at once: the far end of every HTTP bench.
//
//   http_echo [--sse]
//
// With --sse the reply to a call is an event stream of one event instead of a JSON body.
#include "http.h"

#define READ_BYTES (256 * 1024)

struct client {
    int fd;
    struct bytes in;
};

static struct bytes reply, out;
static bool sse;

static void put_http(const char *status, const char *fields, const struct bytes *body) {
    char head[256];
    size_t len = body ? bytes_len(body) : 0;
    snprintf(head, sizeof head, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status, fields, len);
    bytes_text(&out, head);
    if (body) bytes_put(&out, body->data + body->start, len);
}

static void put_events(const struct bytes *body) {
    char size[32];
    bytes_text(&out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    snprintf(size, sizeof size, "%zx\r\n", bytes_len(body) + strlen("event: message\ndata: \n\n"));
    bytes_text(&out, size);
    bytes_text(&out, "event: message\ndata: ");
    bytes_put(&out, body->data + body->start, bytes_len(body));
    bytes_text(&out, "\n\n\r\n0\r\n\r\n");
}

static void answer(const struct http *h) {
    reply.start = reply.end = 0;
    if (h->first.len < 5 || memcmp(h->first.at, "POST ", 5) != 0) return put_http("405 Method Not Allowed", "", NULL);
    bool call = put_reply(&reply, h->body.at, h->body.len);
    if (bytes_len(&reply) == 0) return put_http("202 Accepted", "", NULL);
    if (call && sse) return put_events(&reply);
    put_http("200 OK", call ? "Content-Type: application/json\r\n"
                            : "Content-Type: application/json\r\nMcp-Session-Id: bench\r\n", &reply);
}

static bool serve(struct client *c) {
    ssize_t n = bytes_fill(&c->in, c->fd, READ_BYTES);
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    out.start = out.end = 0;
    for (struct http h; (h = http_read(bytes_head(&c->in), bytes_len(&c->in))).len > 0; c->in.start += h.len) answer(&h);
    write_all(c->fd, out.data, out.end);
    return true;
}

int main(int argc, char **argv) {
    sse = argc == 2 && strcmp(argv[1], "--sse") == 0;
    if (argc > 1 && !sse) usage("http_echo [--sse]");
    signal(SIGPIPE, SIG_IGN);
    int listener = listen_loopback(), ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, ready[64];
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(ep, ready, 64, -1);
        for (int i = 0; i < n; i++) {
            struct client *c = ready[i].data.ptr;
            if (c && !serve(c)) {
                close(c->fd);
                free(c->in.data);
                free(c);
            } else if (!c) {
                int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd < 0) continue;
                set_nodelay(fd);
                c = calloc(1, sizeof *c);
                c->fd = fd;
                event = (struct epoll_event){.events = EPOLLIN, .data.ptr = c};
                epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
            }
        }
    }
}
