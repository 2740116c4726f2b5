//! Imitations of programs that read event streams, each with its own idea of byte order marks, lines
//! and fields. Nothing here is shared with the code under test.

/// How a program reads event streams.
pub(crate) struct SseReader {
    pub(crate) name: &'static str,
    /// The marks that it skips at the start, in this order and each any number of times.
    marks: &'static [&'static str],
    /// What ends a line besides `\n`, `\r` and `\r\n`.
    line_ends: &'static [char],
    /// Whether it ignores case and white space in field names, and accepts events of any name.
    lenient: bool,
    /// Whether it treats a partial event at the end of a stream as complete.
    takes_half: bool,
}

/// The characters that end a line for Python's `splitlines`.
const SPLITLINES: &[char] =
    &['\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];

pub(crate) const READERS: [SseReader; 4] = [
    SseReader {
        name: "the HTML standard",
        marks: &["\u{feff}"],
        line_ends: &[],
        lenient: false,
        takes_half: false,
    },
    SseReader {
        name: "eventsource-parser",
        marks: &["\u{feff}", "\u{ef}\u{bb}\u{bf}"],
        line_ends: &[],
        lenient: false,
        takes_half: false,
    },
    SseReader {
        name: "splitlines",
        marks: &["\u{feff}"],
        line_ends: SPLITLINES,
        lenient: false,
        takes_half: true,
    },
    SseReader {
        name: "one that forgives everything",
        marks: &["\u{feff}", "\u{ef}\u{bb}\u{bf}", "\0"],
        line_ends: SPLITLINES,
        lenient: true,
        takes_half: true,
    },
];

impl SseReader {
    /// The texts that it treats as messages.
    pub(crate) fn messages(&self, stream: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(stream);
        let mut rest = &*text;
        for mark in self.marks {
            rest = rest.trim_start_matches(mark);
        }
        let text = rest.replace("\r\n", "\n").replace('\r', "\n").replace(self.line_ends, "\n");
        let (mut messages, mut data) = (Vec::new(), Vec::<String>::new());
        let mut event = String::new();
        let end = if self.takes_half { "\n\n" } else { "" };
        let text = text + end;
        // The text after the last line ending is not a line.
        let (lines, _) = text.rsplit_once('\n').unwrap_or_default();
        for line in lines.split('\n') {
            if line.is_empty() {
                let taken = matches!(&*event, "" | "message") || self.lenient;
                let message: String = std::mem::take(&mut data).join("\n");
                event.clear();
                if taken && !message.trim().is_empty() {
                    messages.push(message);
                }
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            let name = match self.lenient {
                true => name.trim().to_lowercase(),
                false => name.to_owned(),
            };
            match &*name {
                "data" => data.push(value.to_owned()),
                "event" => event = value.to_owned(),
                _ => {}
            }
        }
        messages
    }
}
