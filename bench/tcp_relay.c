// The bare TCP relay: copies bytes between each client and one upstream port, and nothing else.
// It is the limit for one more process on an HTTP wire.
//
//   tcp_relay PORT
#include "http.h"

#define COPY_BYTES (256 * 1024)

// One end of a pair. Closing either closes both; the few bytes of a closed pair are left behind.
struct end {
    int fd;
    struct end *other;
};

static char copy[COPY_BYTES];

static bool pass(struct end *e) {
    ssize_t n = read(e->fd, copy, COPY_BYTES);
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    write_all(e->other->fd, copy, (size_t)n);
    return true;
}

static struct end *watch(int ep, int fd) {
    struct end *e = calloc(1, sizeof *e);
    e->fd = fd;
    set_nonblocking(fd);
    set_nodelay(fd);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = e};
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
    return e;
}

int main(int argc, char **argv) {
    if (argc != 2) usage("tcp_relay PORT");
    signal(SIGPIPE, SIG_IGN);
    int listener = listen_loopback(), ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, ready[64];
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(ep, ready, 64, -1);
        for (int i = 0; i < n; i++) {
            struct end *e = ready[i].data.ptr;
            if (!e) {
                int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                if (fd < 0) continue;
                struct end *client = watch(ep, fd), *server = watch(ep, connect_loopback(atoi(argv[1])));
                client->other = server;
                server->other = client;
            } else if (e->fd >= 0 && !pass(e)) {
                close(e->fd);
                close(e->other->fd);
                e->fd = e->other->fd = -1;
            }
        }
    }
}
