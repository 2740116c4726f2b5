// What Linux says about a process, and where it lets us run.
#ifndef BENCH_PROC_H
#define BENCH_PROC_H

#include "bench.h"
#include <dirent.h>
#include <sched.h>

static inline long status_kb(pid_t pid, const char *key) {
    char path[64], line[256];
    long kb = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) == 0) kb = atol(line + strlen(key) + 1);
    }
    if (f) fclose(f);
    return kb;
}

// Nanoseconds on a processor, all threads.
static inline uint64_t cpu_ns(pid_t pid) {
    char path[300];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *t; tasks && (t = readdir(tasks));) {
        unsigned long long ns = 0;
        snprintf(path, sizeof path, "/proc/%d/task/%.32s/schedstat", (int)pid, t->d_name);
        FILE *f = t->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (f && fscanf(f, "%llu", &ns) == 1) sum += ns;
        if (f) fclose(f);
    }
    if (tasks) closedir(tasks);
    return sum;
}

// Keeps us and all we start on one core: no idle core to wake, so the figure repeats.
static inline void stay_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0) die("sched_setaffinity");
}

#endif
