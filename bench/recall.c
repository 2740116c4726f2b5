// Answers calls from a tape that lies whole in memory, by the bytes of their params, and does
// nothing else: the limit for playing a tape on stdio. It trusts its tape, which `tape` wrote.
//
//   recall TAPE
#include "bench.h"
#include <sys/stat.h>

#define READ_BYTES (256 * 1024)
#define FLUSH_BYTES (64 * 1024)

// What follows the id of a request, and the answer to it.
struct entry {
    struct span asked, before_id, after_id;
};

static struct entry *entries;
static size_t room;

static uint64_t hash(struct span s) {
    uint64_t h = 0x9e3779b97f4a7c15u ^ s.len;
    for (; s.len >= 8; s.at += 8, s.len -= 8) {
        uint64_t word;
        memcpy(&word, s.at, 8);
        h = (h ^ word) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    for (; s.len > 0; s.at++, s.len--) h = (h ^ (uint8_t)*s.at) * 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

// The place of a request: where it stands, or where it may.
static struct entry *find(struct span asked) {
    size_t i = hash(asked) % room;
    while (entries[i].asked.len > 0 && !(entries[i].asked.len == asked.len && memcmp(entries[i].asked.at, asked.at, asked.len) == 0))
        i = (i + 1) % room;
    return &entries[i];
}

static struct span after(struct span part, const char *end) {
    const char *at = part.at + part.len;
    return (struct span){at, (size_t)(end - at)};
}

static struct span read_whole(const char *path) {
    struct stat stat;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) < 0) die(path);
    struct bytes all = {0};
    bytes_reserve(&all, (size_t)stat.st_size + 1);
    while (bytes_fill(&all, fd, (size_t)stat.st_size + 1 - all.end) > 0) {}
    close(fd);
    return (struct span){all.data, all.end};
}

// The message of a line; the lines of a tape have the message last, or before `latency_ms`.
static struct span message(struct span line) {
    static const char key[] = "\"msg\":";
    const char *p = memmem(line.at, line.len, key, sizeof key - 1);
    if (!p) return (struct span){0};
    p += sizeof key - 1;
    return (struct span){p, (size_t)(skip_value(p, line.at + line.len) - p)};
}

static void learn(struct span tape) {
    const char *end = tape.at + tape.len;
    for (const char *p = tape.at; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++) room++;
    room = room * 2 + 16;
    entries = calloc(room, sizeof *entries);
    struct entry *asked = NULL;
    for (const char *p = tape.at, *eol; p < end && (eol = memchr(p, '\n', (size_t)(end - p))); p = eol + 1) {
        struct span msg = message((struct span){p, (size_t)(eol - p)});
        const char *msg_end = msg.at + msg.len;
        struct envelope e = read_envelope(msg.at, msg_end);
        if (e.id.len == 0) continue;
        if (e.method.len > 0) {
            struct span rest = after(e.id, msg_end);
            asked = find(rest);
            asked->asked = rest;
        } else if (asked) {
            asked->before_id = (struct span){msg.at, (size_t)(e.id.at - msg.at)};
            asked->after_id = after(e.id, msg_end);
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 2) usage("recall TAPE");
    learn(read_whole(argv[1]));
    struct bytes in = {0}, out = {0};
    while (bytes_fill(&in, 0, READ_BYTES) > 0) {
        for (char *head, *eol; (eol = memchr(head = bytes_head(&in), '\n', bytes_len(&in))); in.start += (size_t)(eol - head) + 1) {
            struct span id = read_envelope(head, eol).id;
            if (id.len == 0) continue;
            struct entry *e = find(after(id, eol));
            bytes_put(&out, e->before_id.at, e->before_id.len);
            bytes_put(&out, id.at, id.len);
            bytes_put(&out, e->after_id.at, e->after_id.len);
            bytes_text(&out, "\n");
            if (bytes_len(&out) < FLUSH_BYTES) continue;
            write_all(1, bytes_head(&out), bytes_len(&out));
            out.start = out.end = 0;
        }
        write_all(1, bytes_head(&out), bytes_len(&out));
        out.start = out.end = 0;
    }
    return 0;
}
