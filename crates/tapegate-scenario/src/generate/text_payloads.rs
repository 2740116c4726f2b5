//! Payloads that are text, or arbitrary bytes.

use tapegate_yaml::word_choices;

use super::random::SplitMix;

/// Random characters or bytes.
#[derive(Debug)]
pub(super) struct GarbageText {
    pub(super) bytes: usize,
    pub(super) charset: Charset,
    pub(super) seed: u64,
}

word_choices! {
    /// The characters of random garbage.
    pub(crate) enum Charset {
        /// Printable ASCII.
        Ascii = "ascii",
        /// Characters of one to four bytes.
        Utf8 = "utf8",
        /// Any bytes.
        Binary = "binary",
        Numeric = "numeric",
        Alphanumeric = "alphanumeric",
    }
}

/// Text full of deceptive characters.
#[derive(Debug)]
pub(super) struct UnicodeSpam {
    /// The length limit; the text is shorter by less than one character.
    pub(super) bytes: usize,
    pub(super) category: SpamCategory,
    /// The text that the characters are inserted into, spread evenly behind its characters.
    pub(super) carrier: String,
    pub(super) seed: u64,
}

word_choices! {
    /// The kind of deceptive character.
    pub(crate) enum SpamCategory {
        ZeroWidth = "zero_width",
        Rtl = "rtl",
        Homoglyph = "homoglyph",
        Combining = "combining",
        Emoji = "emoji",
    }
}

/// Text with terminal escape sequences.
#[derive(Debug)]
pub(super) struct AnsiText {
    /// The kinds of sequences, used in turn.
    pub(super) sequences: Vec<AnsiSequence>,
    pub(super) count: usize,
    /// The title, the link target, and the text at the end.
    pub(super) payload: String,
    pub(super) seed: u64,
}

word_choices! {
    /// A terminal escape sequence.
    pub(crate) enum AnsiSequence {
        CursorMove = "cursor_move",
        Color = "color",
        Title = "title",
        Hyperlink = "hyperlink",
        Clear = "clear",
    }
}

const ALPHANUMERIC: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl GarbageText {
    pub(super) fn is_binary(&self) -> bool {
        self.charset == Charset::Binary
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut random = SplitMix::new(self.seed);
        let end = out.len() + self.bytes;
        out.reserve(self.bytes);
        while out.len() < end {
            match self.charset {
                Charset::Ascii => out.push(b' ' + random.below(95) as u8),
                Charset::Binary => {
                    // The last group may be shorter.
                    let left = (end - out.len()).min(8);
                    out.extend_from_slice(&random.next().to_le_bytes()[..left]);
                }
                Charset::Numeric => out.push(b'0' + random.below(10) as u8),
                Charset::Alphanumeric => out.push(ALPHANUMERIC[random.below(ALPHANUMERIC.len())]),
                Charset::Utf8 => {
                    let found = character(&mut random, end - out.len());
                    out.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
    }
}

/// A random character of at most `bytes_max` bytes.
fn character(random: &mut SplitMix, bytes_max: usize) -> char {
    // Only as long as there is room: a character that is cut would not be UTF-8.
    let (start, end) = match random.below(bytes_max.min(4)) {
        0 => (0x20, 0x7f),
        1 => (0xa0, 0x800),
        2 => (0x800, 0xd800),
        _ => (0x1_0000, 0x11_0000),
    };
    char::from_u32(start + random.below((end - start) as usize) as u32).unwrap_or('?')
}

impl UnicodeSpam {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut random = SplitMix::new(self.seed);
        let end = out.len() + self.bytes;
        let mut carrier = self.carrier.chars();
        let places = self.carrier.chars().count().max(1);
        let each = self.bytes.saturating_sub(self.carrier.len()) / places;
        for place in 0..places {
            let letter = carrier.next();
            if let Some(letter) = letter.filter(|letter| out.len() + letter.len_utf8() <= end) {
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            // The remainder goes behind the last character, and the rest of the carrier must fit.
            let room = if place + 1 == places { end } else { (out.len() + each).min(end) };
            self.fill(&mut random, out, room);
        }
    }

    fn fill(&self, random: &mut SplitMix, out: &mut Vec<u8>, end: usize) {
        while let Some(found) = random.pick(self.category.characters()) {
            // Stops short of the limit rather than cut a character.
            if out.len() + found.len_utf8() > end {
                return;
            }
            out.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

impl SpamCategory {
    fn characters(self) -> &'static [char] {
        match self {
            Self::ZeroWidth => &['\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}'],
            // Overrides and isolates, and right-to-left letters.
            Self::Rtl => {
                &['\u{202e}', '\u{202b}', '\u{2067}', '\u{200f}', 'א', 'ב', 'ג', 'ش', 'ع', 'ق']
            }
            // Cyrillic and Greek letters that look Latin.
            Self::Homoglyph => &[
                'а', 'с', 'е', 'о', 'р', 'х', 'у', 'і', 'ѕ', 'ј', 'А', 'В', 'Е', 'К', 'М', 'Н',
                'О', 'Р', 'С', 'Т', 'Х', 'ο', 'ν', 'Α', 'Β', 'Ζ',
            ],
            Self::Combining => &[
                '\u{300}', '\u{301}', '\u{302}', '\u{303}', '\u{308}', '\u{30a}', '\u{316}',
                '\u{323}', '\u{334}', '\u{335}', '\u{338}', '\u{353}', '\u{35b}', '\u{36f}',
            ],
            Self::Emoji => &['😀', '🔥', '💀', '🚀', '👾', '🧨', '🫠', '🦀', '🧿', '👁'],
        }
    }
}

impl AnsiText {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut random = SplitMix::new(self.seed);
        // In turn, so that every kind occurs as often.
        for sequence in self.sequences.iter().cycle().take(self.count) {
            let payload = &self.payload;
            let text = match sequence {
                AnsiSequence::CursorMove => {
                    format!("\u{1b}[{};{}H", 1 + random.below(50), 1 + random.below(132))
                }
                AnsiSequence::Color => {
                    format!("\u{1b}[{};{}m", 30 + random.below(8), 40 + random.below(8))
                }
                AnsiSequence::Title => format!("\u{1b}]0;{payload}\u{7}"),
                AnsiSequence::Hyperlink => {
                    format!("\u{1b}]8;;{payload}\u{1b}\\link\u{1b}]8;;\u{1b}\\")
                }
                AnsiSequence::Clear => "\u{1b}[2J\u{1b}[H".to_owned(),
            };
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(self.payload.as_bytes());
    }

    pub(super) fn bytes_max(&self) -> usize {
        // The maximum length of a sequence without its payload.
        const COMMAND_BYTES_MAX: usize = 24;
        let each = self.payload.len().saturating_add(COMMAND_BYTES_MAX);
        self.count.saturating_mul(each).saturating_add(self.payload.len())
    }
}
