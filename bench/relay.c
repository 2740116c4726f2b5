// The bare relay: runs a command and copies bytes between it and us, both ways, and nothing else.
// It is the limit for one more process on a stdio wire. With --tee it also writes what it read to
// a file before it sends it on: the limit for a recorder.
//
//   relay [--tee FILE] CMD ARGS...
#include "bench.h"

#define COPY_BYTES (256 * 1024)

struct pump {
    int from, to;
    size_t start, end;
    char *data;
};

static int tape = -1;

static void pump_close(struct pump *p) {
    close(p->from);
    close(p->to);
    p->from = -1;
}

static void pump_step(struct pump *p) {
    if (p->start == p->end) {
        ssize_t n = read(p->from, p->data, COPY_BYTES);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) return pump_close(p);
        p->start = 0;
        p->end = (size_t)n;
        if (tape >= 0) write_all(tape, p->data, p->end);
    }
    ssize_t n = write(p->to, p->data + p->start, p->end - p->start);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) return pump_close(p);
    p->start += (size_t)n;
}

static void pump_both(struct pump *pumps) {
    while (pumps[0].from >= 0 || pumps[1].from >= 0) {
        struct pollfd polls[2];
        for (int i = 0; i < 2; i++) {
            bool idle = pumps[i].start == pumps[i].end;
            polls[i].fd = pumps[i].from < 0 ? -1 : idle ? pumps[i].from : pumps[i].to;
            polls[i].events = idle ? POLLIN : POLLOUT;
        }
        if (poll(polls, 2, -1) < 0 && errno != EINTR) die("poll");
        for (int i = 0; i < 2; i++) {
            if (polls[i].fd >= 0 && polls[i].revents) pump_step(&pumps[i]);
        }
        if (pumps[1].from < 0) return;
    }
}

int main(int argc, char **argv) {
    if (argc > 3 && strcmp(argv[1], "--tee") == 0) {
        tape = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
        if (tape < 0) die(argv[2]);
        argv += 2;
        argc -= 2;
    }
    if (argc < 2) usage("relay [--tee FILE] CMD ARGS...");
    signal(SIGPIPE, SIG_IGN);
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC)) die("pipe");
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        execvp(argv[1], argv + 1);
        die(argv[1]);
    }
    close(down[0]);
    close(up[1]);
    struct pump pumps[2] = {{.from = 0, .to = down[1]}, {.from = up[0], .to = 1}};
    for (int i = 0; i < 2; i++) {
        pumps[i].data = malloc(COPY_BYTES);
        set_nonblocking(pumps[i].from);
        set_nonblocking(pumps[i].to);
    }
    pump_both(pumps);
    close(down[1]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
