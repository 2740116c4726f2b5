// The stdio load generator: runs the command under test, talks MCP to it and checks every reply.
// Prints one JSON object. The command's memory and processor time are read from /proc, its own
// process only, so the server behind a proxy does not count.
//
//   load latency  [options] -- CMD...   one call at a time: percentiles of the round trip
//   load flood    [options] -- CMD...   --window calls outstanding: calls per second, losses
//   load memory   [options] -- CMD...   resident memory at rest, at the peak and after large calls
//   load start    [options] -- CMD...   time from fork to the first reply, --count runs; memory then
//
// With --numbered 1 each call asks for its own text, as a tape written by `tape` has it; with
// --shuffled 1 in another order.
#include "proc.h"

#define READ_BYTES (1024 * 1024)
#define WRITE_BYTES (64 * 1024)

struct options {
    const char *mode;
    uint32_t count, window;
    int core;
    bool numbered, shuffled;
    size_t text_len;
    double seconds_max, stall_s;
    char **command;
};

struct subject {
    pid_t pid;
    int to, from;
    struct bytes in;
    size_t scanned;
    bool closed;
};

static struct subject subject_start(char **command) {
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC)) die("pipe");
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        execvp(command[0], command);
        die(command[0]);
    }
    close(down[0]);
    close(up[1]);
    set_nonblocking(down[1]);
    set_nonblocking(up[0]);
    return (struct subject){.pid = pid, .to = down[1], .from = up[0]};
}

// Closes its input and waits; a command that does not leave is killed. Gives the milliseconds it took.
static double subject_stop(struct subject *s, int *code) {
    uint64_t begin = now_ns();
    close(s->to);
    int status = 0;
    for (int i = 0; i < 3000; i++) {
        if (waitpid(s->pid, &status, WNOHANG) == s->pid) break;
        if (i == 2999) {
            kill(s->pid, SIGKILL);
            waitpid(s->pid, &status, 0);
        }
        while (read(s->from, bytes_reserve(&s->in, READ_BYTES), READ_BYTES) > 0) {}
        sleep_ms(1);
    }
    close(s->from);
    free(s->in.data);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return (double)(now_ns() - begin) / 1e6;
}

// The next whole line, or false when none is there yet.
static bool next_line(struct subject *s, struct span *line) {
    char *head = bytes_head(&s->in);
    char *newline = memchr(head + s->scanned, '\n', bytes_len(&s->in) - s->scanned);
    s->scanned = newline ? 0 : bytes_len(&s->in);
    if (!newline) return false;
    *line = (struct span){head, (size_t)(newline - head)};
    s->in.start += line->len + 1;
    return true;
}

// Waits for readable (or writable, when asked). False after `stall_s` without either.
static bool wait_for(struct subject *s, bool write_too, double stall_s) {
    struct pollfd p[2] = {{s->from, POLLIN, 0}, {write_too ? s->to : -1, POLLOUT, 0}};
    return poll(p, 2, (int)(stall_s * 1000)) > 0;
}

static bool take_more(struct subject *s) {
    ssize_t n = bytes_fill(&s->in, s->from, READ_BYTES);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) s->closed = true;
    return n > 0;
}

static bool await_reply(struct subject *s, double stall_s) {
    struct span line;
    for (;;) {
        while (next_line(s, &line)) {
            struct envelope e = read_envelope(line.at, line.at + line.len);
            if (e.id.len > 0 && e.method.len == 0) return e.result.len > 0;
        }
        if (s->closed || !wait_for(s, false, stall_s)) return false;
        take_more(s);
    }
}

static bool handshake(struct subject *s, double stall_s) {
    write_all(s->to, INITIALIZE "\n", sizeof INITIALIZE);
    if (!await_reply(s, stall_s)) return false;
    write_all(s->to, INITIALIZED "\n", sizeof INITIALIZED);
    return true;
}

// Sends `out` while reading, as far as the pipes take it. False on a stall or a closed pipe.
static bool exchange(struct subject *s, struct bytes *out, double stall_s) {
    bool moved = false;
    if (bytes_len(out) > 0) {
        ssize_t n = write(s->to, bytes_head(out), bytes_len(out));
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (n > 0) out->start += (size_t)n;
        moved = n > 0;
    }
    if (take_more(s) || moved) return true;
    return !s->closed && wait_for(s, bytes_len(out) > 0, stall_s);
}

// The numbers below `count` in an order without rhyme, the same each time.
static uint32_t *shuffle(uint32_t count) {
    uint32_t *order = calloc(count, sizeof *order);
    uint64_t state = 88172645463325252u;
    for (uint32_t i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint32_t at = (uint32_t)(state % (i + 1));
        order[i] = order[at];
        order[at] = i;
    }
    return order;
}

struct flood {
    struct tally tally;
    double seconds, cpu_us;
};

// Keeps up to `window` of `count` calls outstanding until all are answered or nothing moves.
static struct flood run_flood(struct subject *s, const struct options *o, uint32_t count, uint32_t window) {
    struct call call = make_call(o->text_len, "\n");
    struct bytes out = {0};
    struct flood f = {.tally = {.seen = calloc(count + 1, 1), .numbered = o->numbered}};
    uint32_t *order = o->shuffled ? shuffle(count) : NULL;
    uint64_t cpu = cpu_ns(s->pid), begin = now_ns(), last = begin;
    uint64_t deadline = begin + (uint64_t)(o->seconds_max * 1e9);
    while (f.tally.once < count) {
        bool more = f.tally.sent < count && last < deadline;
        if (!more && f.tally.once == f.tally.sent) break;
        while (more && bytes_len(&out) < WRITE_BYTES && f.tally.sent < count && f.tally.sent - f.tally.once < window) {
            uint32_t n = order ? order[f.tally.sent] : f.tally.sent;
            put_id(call.data + call.id_at, ID_FIRST + n);
            if (o->numbered) number_call(&call, n);
            bytes_put(&out, call.data, call.len);
            f.tally.sent++;
        }
        if (!exchange(s, &out, o->stall_s)) break;
        struct span line;
        while (next_line(s, &line)) tally_reply(&f.tally, line.at, line.len, o->text_len, count);
        last = now_ns();
    }
    f.seconds = (double)(last - begin) / 1e9;
    f.cpu_us = (double)(cpu_ns(s->pid) - cpu) / 1e3;
    free(out.data);
    free(call.data);
    free(order);
    free(f.tally.seen);
    f.tally.seen = NULL;
    return f;
}

static void flood(struct subject *s, const struct options *o) {
    struct flood f = run_flood(s, o, o->count, o->window);
    printf("\"window\":%u,\"per_s\":%.1f,\"cpu_us\":%.3f,\"peak_kb\":%ld", o->window,
           f.seconds > 0 ? f.tally.once / f.seconds : 0, f.tally.once ? f.cpu_us / f.tally.once : 0,
           status_kb(s->pid, "VmHWM"));
    print_tally(&f.tally);
}

static void latency(struct subject *s, const struct options *o) {
    struct call call = make_call(o->text_len, "\n");
    uint64_t *ns = calloc(o->count, sizeof *ns);
    struct tally t = {.seen = calloc(o->count, 1), .numbered = o->numbered};
    struct span line;
    uint64_t cpu = cpu_ns(s->pid), deadline = now_ns() + (uint64_t)(o->seconds_max * 1e9);
    bool alive = true;
    while (alive && t.sent < o->count && now_ns() < deadline) {
        put_id(call.data + call.id_at, ID_FIRST + t.sent);
        if (o->numbered) number_call(&call, t.sent);
        t.sent++;
        uint64_t begin = now_ns();
        write_all(s->to, call.data, call.len);
        while (t.once < t.sent) {
            alive = !s->closed && wait_for(s, false, o->stall_s);
            if (!alive) break;
            take_more(s);
            while (next_line(s, &line)) tally_reply(&t, line.at, line.len, o->text_len, t.sent);
        }
        if (alive) ns[t.sent - 1] = now_ns() - begin;
    }
    double cpu_us = (double)(cpu_ns(s->pid) - cpu) / 1e3;
    printf("\"p50_us\":%.2f,", percentile_us(ns, t.once, 0.5));
    printf("\"p90_us\":%.2f,", percentile_us(ns, t.once, 0.9));
    printf("\"p99_us\":%.2f,\"cpu_us\":%.3f", percentile_us(ns, t.once, 0.99), t.once ? cpu_us / t.once : 0);
    print_tally(&t);
}

static void memory(struct subject *s, const struct options *o) {
    struct options small = *o;
    small.text_len = 16;
    struct flood warm = run_flood(s, &small, 100, 1);
    sleep_ms(300);
    long rest_kb = status_kb(s->pid, "VmRSS");
    struct flood f = run_flood(s, o, o->count, 1);
    long after_kb = status_kb(s->pid, "VmRSS");
    sleep_ms(1500);
    printf("\"rest_kb\":%ld,\"peak_kb\":%ld,\"after_kb\":%ld,\"idle_kb\":%ld,\"warm_lost\":%u", rest_kb,
           status_kb(s->pid, "VmHWM"), after_kb, status_kb(s->pid, "VmRSS"), warm.tally.sent - warm.tally.once);
    print_tally(&f.tally);
}

static bool start(const struct options *o) {
    uint64_t *ns = calloc(o->count, sizeof *ns), *stop_ns = calloc(o->count, sizeof *ns);
    uint32_t done = 0;
    int code = 0;
    long rss_kb = 0, peak_kb = 0;
    uint64_t deadline = now_ns() + (uint64_t)(o->seconds_max * 1e9);
    for (; done < o->count && now_ns() < deadline; done++) {
        uint64_t begin = now_ns();
        struct subject s = subject_start(o->command);
        bool ok = handshake(&s, o->stall_s);
        ns[done] = now_ns() - begin;
        rss_kb = status_kb(s.pid, "VmRSS");
        peak_kb = status_kb(s.pid, "VmHWM");
        stop_ns[done] = (uint64_t)(subject_stop(&s, &code) * 1e6);
        if (!ok) return false;
    }
    printf("{\"mode\":\"start\",\"count\":%u,\"start_ms\":%.3f,\"stop_ms\":%.3f,\"rss_kb\":%ld,\"peak_kb\":%ld,\"code\":%d}\n",
           done, percentile_us(ns, done, 0.5) / 1e3, percentile_us(stop_ns, done, 0.5) / 1e3, rss_kb, peak_kb, code);
    return true;
}

static struct options parse(int argc, char **argv) {
    static const char text[] = "load latency|flood|memory|start [--count N] [--window N] [--text BYTES] "
                               "[--numbered 1] [--shuffled 1] [--core N] [--seconds-max S] [--stall S] -- CMD...";
    struct options o = {.count = 1000, .window = 1, .core = -1, .text_len = 16, .seconds_max = 60, .stall_s = 5};
    if (argc < 2) usage(text);
    o.mode = argv[1];
    int i = 2;
    for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
        double value = atof(argv[i + 1]);
        if (strcmp(argv[i], "--count") == 0) o.count = (uint32_t)value;
        else if (strcmp(argv[i], "--window") == 0) o.window = (uint32_t)value;
        else if (strcmp(argv[i], "--core") == 0) o.core = (int)value;
        else if (strcmp(argv[i], "--numbered") == 0) o.numbered = value != 0;
        else if (strcmp(argv[i], "--shuffled") == 0) o.shuffled = value != 0;
        else if (strcmp(argv[i], "--text") == 0) o.text_len = (size_t)value;
        else if (strcmp(argv[i], "--seconds-max") == 0) o.seconds_max = value;
        else if (strcmp(argv[i], "--stall") == 0) o.stall_s = value;
        else usage(text);
    }
    if (i + 1 >= argc || o.count == 0 || o.count > 8000000) usage(text);
    o.command = argv + i + 1;
    return o;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(struct subject *, const struct options *);
    } modes[] = {{"latency", latency}, {"flood", flood}, {"memory", memory}};

    struct options o = parse(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (o.core >= 0) stay_on(o.core);
    if (strcmp(o.mode, "start") == 0) return start(&o) ? 0 : 1;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(o.mode, modes[i].name) != 0) continue;
        struct subject s = subject_start(o.command);
        if (!handshake(&s, o.stall_s)) {
            fprintf(stderr, "bench: no reply to initialize\n");
            kill(s.pid, SIGKILL);
            return 1;
        }
        int code = 0;
        printf("{\"mode\":\"%s\",", o.mode);
        modes[i].run(&s, &o);
        double stop_ms = subject_stop(&s, &code);
        printf(",\"stop_ms\":%.1f,\"code\":%d}\n", stop_ms, code);
        return 0;
    }
    usage("load latency|flood|memory|start ...");
}
