//! Counters of the bash tool, as Prometheus text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The upper bounds of the histogram, in seconds.
const BUCKETS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 600.0];

/// All counters.
#[derive(Debug, Default)]
pub struct BashMetrics(Mutex<MetricValues>);

#[derive(Debug, Default)]
struct MetricValues {
    /// By exit code class and whether the command timed out.
    commands: BTreeMap<(&'static str, bool), u64>,
    durations: [u64; BUCKETS.len()],
    duration_seconds: f64,
    /// By kind of error.
    errors: BTreeMap<&'static str, u64>,
    active_sessions: u64,
    entries: u64,
    output_bytes: u64,
    truncated: u64,
}

impl BashMetrics {
    /// Counts a command that has ended.
    pub fn count_command(&self, exit_code: Option<i32>, timed_out: bool, seconds: f64) {
        let mut values = self.values();
        // A label with every possible code would make too many series.
        let class = match exit_code {
            Some(0) => "0",
            Some(1) => "1",
            Some(_) => "2+",
            None => "none",
        };
        *values.commands.entry((class, timed_out)).or_default() += 1;
        values.duration_seconds += seconds;
        for (count, bound) in values.durations.iter_mut().zip(BUCKETS) {
            // Buckets are cumulative, as Prometheus defines them.
            *count += u64::from(seconds <= bound);
        }
    }

    /// Counts the output of a command.
    pub fn count_output(&self, bytes: u64, is_truncated: bool) {
        let mut values = self.values();
        values.output_bytes += bytes;
        values.truncated += u64::from(is_truncated);
    }

    /// Counts an entry that was written.
    pub fn count_entry(&self) {
        self.values().entries += 1;
    }

    /// Counts a failure to record.
    pub fn count_error(&self, kind: &'static str) {
        *self.values().errors.entry(kind).or_default() += 1;
    }

    /// Sets how many sessions are open.
    pub fn set_active_sessions(&self, count: usize) {
        self.values().active_sessions = count as u64;
    }

    fn values(&self) -> MutexGuard<'_, MetricValues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All values as Prometheus text.
    pub fn prometheus_text(&self) -> String {
        let values = self.values();
        let mut text = String::new();
        family(&mut text, "commands_total", "counter", "Commands executed.");
        for ((class, timed_out), count) in &values.commands {
            let labels = format!("{{exit_code=\"{class}\",timed_out=\"{timed_out}\"}}");
            sample(&mut text, &format!("commands_total{labels}"), count);
        }
        let name = "command_duration_seconds";
        family(&mut text, name, "histogram", "How long commands took.");
        for (count, bound) in values.durations.iter().zip(BUCKETS) {
            sample(&mut text, &format!("{name}_bucket{{le=\"{bound}\"}}"), count);
        }
        // The sum under the same lock, so that the histogram agrees with the counter.
        let all: u64 = values.commands.values().sum();
        sample(&mut text, &format!("{name}_bucket{{le=\"+Inf\"}}"), &all);
        sample(&mut text, &format!("{name}_sum"), &values.duration_seconds);
        sample(&mut text, &format!("{name}_count"), &all);
        family(&mut text, "recording_errors_total", "counter", "Failures to record.");
        for (kind, count) in &values.errors {
            let labels = format!("{{error_type=\"{kind}\"}}");
            sample(&mut text, &format!("recording_errors_total{labels}"), count);
        }
        for (name, kind, about, value) in [
            ("active_sessions", "gauge", "Open recording sessions.", values.active_sessions),
            ("entries_recorded_total", "counter", "Entries written.", values.entries),
            ("output_bytes_total", "counter", "Bytes of output captured.", values.output_bytes),
            (
                "output_truncated_total",
                "counter",
                "Commands whose output was cut.",
                values.truncated,
            ),
        ] {
            family(&mut text, name, kind, about);
            sample(&mut text, name, &value);
        }
        text
    }
}

fn family(text: &mut String, name: &str, kind: &str, about: &str) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "# HELP bash_recorder_{name} {about}");
    let _ = writeln!(text, "# TYPE bash_recorder_{name} {kind}");
}

fn sample(text: &mut String, name: &str, value: &dyn std::fmt::Display) {
    let _ = writeln!(text, "bash_recorder_{name} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_in_the_text() {
        let metrics = BashMetrics::default();
        metrics.count_command(Some(0), false, 0.02);
        metrics.count_command(Some(77), false, 2.0);
        metrics.count_command(None, true, 1000.0);
        metrics.count_output(7, true);
        metrics.count_entry();
        metrics.count_error("disk_full");
        metrics.set_active_sessions(2);
        let text = metrics.prometheus_text();
        for line in [
            "bash_recorder_commands_total{exit_code=\"0\",timed_out=\"false\"} 1",
            "bash_recorder_commands_total{exit_code=\"2+\",timed_out=\"false\"} 1",
            "bash_recorder_commands_total{exit_code=\"none\",timed_out=\"true\"} 1",
            "bash_recorder_command_duration_seconds_bucket{le=\"0.05\"} 1",
            "bash_recorder_command_duration_seconds_bucket{le=\"5\"} 2",
            "bash_recorder_command_duration_seconds_bucket{le=\"+Inf\"} 3",
            "bash_recorder_command_duration_seconds_count 3",
            "bash_recorder_recording_errors_total{error_type=\"disk_full\"} 1",
            "bash_recorder_active_sessions 2",
            "bash_recorder_entries_recorded_total 1",
            "bash_recorder_output_bytes_total 7",
            "bash_recorder_output_truncated_total 1",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in {text}");
        }
    }
}
