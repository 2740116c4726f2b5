//! Params in canonical form: keys sorted, numbers and strings normalised, no white space.

use std::ops::Range;

use super::walk::{ParamsEvent, ParamsWalk};
use crate::json::{JsonFault, Number, write_exact};

/// Placeholder for a value of which only the presence counts.
const HIDDEN: &[u8] = "\"…\"".as_bytes();

/// An object or array being written.
struct CanonicalLevel {
    object: bool,
    /// The start of its text.
    start: usize,
    /// The key and the text of each value so far.
    children: Vec<(Vec<u8>, Range<usize>)>,
    /// The key of the next value.
    key: Vec<u8>,
}

/// The canonical text of the values that `walk` visits.
pub(super) fn write(mut walk: ParamsWalk<'_, '_>) -> Result<Vec<u8>, JsonFault> {
    let mut out = Vec::new();
    let mut levels: Vec<CanonicalLevel> = Vec::new();
    let mut scratch = Vec::new();
    while let Some(event) = walk.next()? {
        let mut start = out.len();
        match event {
            ParamsEvent::Key(key) => {
                if let Some(level) = levels.last_mut() {
                    level.key.clear();
                    key.write_value_bytes(&mut level.key);
                }
                continue;
            }
            ParamsEvent::Open { object } => {
                levels.push(CanonicalLevel {
                    object,
                    start,
                    children: Vec::new(),
                    key: Vec::new(),
                });
                continue;
            }
            ParamsEvent::Close => {
                let Some(level) = levels.pop() else { break };
                start = level.start;
                level.close(&mut out, &mut scratch);
            }
            ParamsEvent::String(string) => {
                scratch.clear();
                string.write_value_bytes(&mut scratch);
                write_exact(&mut out, &scratch);
            }
            ParamsEvent::Number(text) => Number::read(text).write(&mut out),
            ParamsEvent::Text(text) => out.extend_from_slice(text),
            ParamsEvent::Hidden => out.extend_from_slice(HIDDEN),
        }
        if let Some(level) = levels.last_mut() {
            level.children.push((std::mem::take(&mut level.key), start..out.len()));
        }
    }
    Ok(out)
}

impl CanonicalLevel {
    /// Joins the texts at the end of `out`, in order, with brackets and commas.
    fn close(mut self, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
        scratch.clear();
        scratch.push(if self.object { b'{' } else { b'[' });
        if self.object {
            // Repeated keys keep their order.
            self.children.sort_by(|one, two| one.0.cmp(&two.0));
        }
        for (index, (key, text)) in self.children.into_iter().enumerate() {
            scratch.extend((index > 0).then_some(b','));
            if self.object {
                write_exact(scratch, &key);
                scratch.push(b':');
            }
            scratch.extend_from_slice(&out[text]);
        }
        scratch.push(if self.object { b'}' } else { b']' });
        out.truncate(self.start);
        out.extend_from_slice(scratch);
    }
}
