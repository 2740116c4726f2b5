// Writes a tape of calls to the echo tool, in tapegate's form or in that of a peer. The same
// arguments give the same bytes.
//
//   tape FILE [--form tapegate|mcp-rec|agent-vcr|mcp-recorder] [--calls N] [--bytes N] [--text BYTES]
//
// Call n asks for a text that starts with n in seven digits and gets that text back, as the load
// generators ask with --numbered. It ends after --calls, or once the file has --bytes.
#include "bench.h"

#define FLUSH_BYTES (1024 * 1024)

// What stands around the messages. Of the marks in it `%s` is the time, `%u` the number of the next
// message, `%t`, `%c` and `%a` how many there were in all, of the client and of the server.
struct form {
    const char *name, *head, *asked, *answered, *end, *between, *foot;
    bool notes; // whether notifications are written down
};

static const struct form FORMS[] = {
    {"tapegate",
     "{\"type\":\"header\",\"version\":\"1.0\",\"recorded_at\":\"%s\",\"upstream\":\"echo\",\"thoughtjack_version\":\"0.1.0\"}\n",
     "{\"type\":\"message\",\"seq\":%u,\"ts\":\"%s\",\"dir\":\"c2s\",\"msg\":",
     "}\n{\"type\":\"message\",\"seq\":%u,\"ts\":\"%s\",\"dir\":\"s2c\",\"msg\":", ",\"latency_ms\":1}\n", "",
     "{\"type\":\"footer\",\"total_messages\":%t,\"duration_ms\":1,\"client_messages\":%c,\"server_messages\":%a}\n", true},
    {"mcp-rec", "", "{\"ts\":1767225600.5,\"dir\":\"client->server\",\"msg\":",
     "}\n{\"ts\":1767225600.5,\"dir\":\"server->client\",\"msg\":", "}\n", "", "", false},
    {"agent-vcr",
     "{\"format_version\":\"1.0.0\",\"metadata\":{\"version\":\"1.0.0\",\"recorded_at\":\"%s\",\"transport\":\"stdio\"},\"session\":{"
     "\"initialize_request\":" INITIALIZE ",\"initialize_response\":{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}},\"interactions\":[\n",
     "{\"sequence\":%u,\"timestamp\":\"%s\",\"direction\":\"client_to_server\",\"latency_ms\":1,\"request\":", ",\"response\":", "}",
     ",\n", "]}}\n", false},
    {"mcp-recorder", "{\"version\":\"1.0\",\"metadata\":{\"recorded_at\":\"%s\"},\"interactions\":[\n",
     "{\"type\":\"jsonrpc_request\",\"latency_ms\":1,\"request\":", ",\"response\":", "}", ",\n", "]}\n", false},
};

struct tape {
    int fd;
    const struct form *form;
    struct bytes out;
    uint64_t written;
    uint32_t asked, noted, answered, ms;
};

static void flush(struct tape *t) {
    write_all(t->fd, bytes_head(&t->out), bytes_len(&t->out));
    t->written += bytes_len(&t->out);
    t->out.start = t->out.end = 0;
}

static void put_number(struct bytes *b, uint32_t n) {
    char digits[10];
    int i = 10;
    do digits[--i] = (char)('0' + n % 10);
    while (n /= 10);
    bytes_put(b, digits + i, (size_t)(10 - i));
}

static void put_time(struct bytes *b, uint32_t ms) {
    char text[] = "2026-01-01T00:00:00.000000Z";
    static const struct {
        int at, digits, unit;
        uint32_t of;
    } parts[] = {{9, 1, 86400000, 9}, {11, 2, 3600000, 24}, {14, 2, 60000, 60}, {17, 2, 1000, 60}, {20, 3, 1, 1000}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint32_t value = ms / (uint32_t)parts[i].unit % parts[i].of + (i == 0);
        for (int d = parts[i].digits - 1; d >= 0; d--, value /= 10) text[parts[i].at + d] = (char)('0' + value % 10);
    }
    bytes_put(b, text, sizeof text - 1);
}

static void put_part(struct tape *t, const char *part) {
    for (const char *mark; (mark = strchr(part, '%')) != NULL; part = mark + 2) {
        bytes_put(&t->out, part, (size_t)(mark - part));
        uint32_t client = t->asked + t->noted, total = client + t->answered;
        switch (mark[1]) {
        case 's': put_time(&t->out, t->ms++); break;
        case 'u': put_number(&t->out, total + 1); break;
        case 't': put_number(&t->out, total); break;
        case 'c': put_number(&t->out, client); break;
        case 'a': put_number(&t->out, t->answered); break;
        }
    }
    bytes_text(&t->out, part);
}

// One request and its answer.
static void put_pair(struct tape *t, const char *ask, size_t ask_len, const char *answer, size_t answer_len) {
    if (t->asked > 0) put_part(t, t->form->between);
    put_part(t, t->form->asked);
    bytes_put(&t->out, ask, ask_len);
    t->asked++;
    put_part(t, t->form->answered);
    bytes_put(&t->out, answer, answer_len);
    t->answered++;
    put_part(t, t->form->end);
    if (bytes_len(&t->out) >= FLUSH_BYTES) flush(t);
}

static void put_handshake(struct tape *t) {
    struct bytes answer = {0};
    put_part(t, t->form->head);
    put_reply(&answer, INITIALIZE, sizeof INITIALIZE - 1);
    put_pair(t, INITIALIZE, sizeof INITIALIZE - 1, answer.data, answer.end);
    if (t->form->notes) {
        put_part(t, t->form->asked);
        bytes_text(&t->out, INITIALIZED "}\n");
        t->noted++;
    }
}

static void put_calls(struct tape *t, uint32_t calls, uint64_t bytes_most, size_t text_len) {
    struct call ask = make_call(text_len, "");
    struct bytes reply = {0};
    put_reply(&reply, ask.data, ask.len);
    struct call answer = call_at(reply.data, reply.end);
    for (uint32_t n = 0; n < calls && t->written < bytes_most; n++) {
        put_id(ask.data + ask.id_at, ID_TAPE + n);
        put_id(answer.data + answer.id_at, ID_TAPE + n);
        number_call(&ask, n);
        number_call(&answer, n);
        put_pair(t, ask.data, ask.len, answer.data, answer.len);
    }
}

int main(int argc, char **argv) {
    static const char text[] = "tape FILE [--form NAME] [--calls N] [--bytes N] [--text BYTES]";
    uint32_t calls = CALLS_MAX;
    uint64_t bytes_most = UINT64_MAX;
    size_t text_len = 16;
    struct tape t = {.form = FORMS};
    if (argc < 2 || argc % 2 != 0) usage(text);
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--calls") == 0) calls = (uint32_t)atof(argv[i + 1]);
        else if (strcmp(argv[i], "--bytes") == 0) bytes_most = (uint64_t)atof(argv[i + 1]);
        else if (strcmp(argv[i], "--text") == 0) text_len = (size_t)atof(argv[i + 1]);
        else if (strcmp(argv[i], "--form") == 0) {
            t.form = NULL;
            for (size_t f = 0; f < sizeof FORMS / sizeof *FORMS; f++) {
                if (strcmp(argv[i + 1], FORMS[f].name) == 0) t.form = &FORMS[f];
            }
        } else usage(text);
        if (!t.form) usage(text);
    }
    if (calls > CALLS_MAX || text_len < ID_DIGITS) usage(text);
    t.fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (t.fd < 0) die(argv[1]);
    put_handshake(&t);
    put_calls(&t, calls, bytes_most, text_len);
    put_part(&t, t.form->foot);
    flush(&t);
    printf("{\"bytes\":%llu,\"messages\":%u}\n", (unsigned long long)t.written, t.asked + t.noted + t.answered);
    return 0;
}
