// A stdio MCP server that answers at once and does nothing else: the far end of every stdio bench.
//
//   echo [--hold N]
//
// With --hold, calls are answered only once N of them lie here, so that a proxy in between has
// N requests outstanding.
#include "bench.h"

#define READ_BYTES (256 * 1024)
#define FLUSH_BYTES (256 * 1024)

int main(int argc, char **argv) {
    long hold = 0;
    if (argc == 3 && strcmp(argv[1], "--hold") == 0) hold = atol(argv[2]);
    else if (argc != 1) usage("echo [--hold N]");

    struct bytes in = {0}, out = {0};
    size_t scanned = 0;
    long held = 0;
    while (bytes_fill(&in, 0, READ_BYTES) > 0) {
        for (;;) {
            char *head = bytes_head(&in), *from = head + scanned;
            char *newline = memchr(from, '\n', bytes_len(&in) - scanned);
            scanned = newline ? 0 : bytes_len(&in);
            if (!newline) break;
            if (put_reply(&out, head, (size_t)(newline - head)) && hold > 0) held++;
            if (out.end > 0 && out.data[out.end - 1] != '\n') bytes_text(&out, "\n");
            in.start += (size_t)(newline - head) + 1;
            if (held == 0 && bytes_len(&out) >= FLUSH_BYTES) {
                write_all(1, bytes_head(&out), bytes_len(&out));
                out.start = out.end = 0;
            }
        }
        if (held > 0 && held < hold) continue;
        held = 0;
        write_all(1, bytes_head(&out), bytes_len(&out));
        out.start = out.end = 0;
    }
    return 0;
}
