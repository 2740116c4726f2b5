//! Payloads that are JSON.

use tapegate_core::frame::notification_text;
use tapegate_yaml::word_choices;

/// A deeply nested value.
#[derive(Debug)]
pub(super) struct NestedValue {
    pub(super) depth: usize,
    pub(super) structure: NestingStructure,
    /// The key, as JSON.
    pub(super) key: Vec<u8>,
    /// The innermost value, as JSON.
    pub(super) inner: Vec<u8>,
}

word_choices! {
    /// The containers that values are nested in.
    pub(crate) enum NestingStructure {
        Object = "object",
        Array = "array",
        /// Alternately in objects and arrays, with an object outermost.
        Mixed = "mixed",
    }
}

/// Many notifications in one array.
#[derive(Debug)]
pub(super) struct NotificationBatch {
    pub(super) count: usize,
    /// The notification.
    pub(super) message: Vec<u8>,
}

/// An object with one key many times.
#[derive(Debug)]
pub(super) struct RepeatedKeys {
    pub(super) count: usize,
    pub(super) key_length: usize,
    /// The value, as JSON.
    pub(super) value: Vec<u8>,
}

impl NestedValue {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for level in 0..self.depth {
            if self.is_object(level) {
                out.push(b'{');
                out.extend_from_slice(&self.key);
                out.push(b':');
            } else {
                out.push(b'[');
            }
        }
        out.extend_from_slice(&self.inner);
        for level in (0..self.depth).rev() {
            out.push(if self.is_object(level) { b'}' } else { b']' });
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let objects = match self.structure {
            NestingStructure::Object => self.depth,
            NestingStructure::Array => 0,
            NestingStructure::Mixed => self.depth.div_ceil(2),
        };
        let keys = objects.saturating_mul(self.key.len() + 1);
        self.depth.saturating_mul(2).saturating_add(keys).saturating_add(self.inner.len())
    }

    fn is_object(&self, level: usize) -> bool {
        match self.structure {
            NestingStructure::Object => true,
            NestingStructure::Array => false,
            NestingStructure::Mixed => level.is_multiple_of(2),
        }
    }
}

impl NotificationBatch {
    pub(super) fn new(count: usize, method: &str, params: Option<Vec<u8>>) -> Self {
        Self { count, message: notification_text(method, params.as_deref()) }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for index in 0..self.count {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&self.message);
        }
        out.push(b']');
    }

    pub(super) fn bytes(&self) -> usize {
        self.count.saturating_mul(self.message.len() + 1).saturating_add(1)
    }
}

impl RepeatedKeys {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for index in 0..self.count {
            if index > 0 {
                out.push(b',');
            }
            out.push(b'"');
            out.resize(out.len() + self.key_length, b'k');
            out.extend_from_slice(b"\":");
            out.extend_from_slice(&self.value);
        }
        out.push(b'}');
    }

    pub(super) fn bytes(&self) -> usize {
        let entry = self.key_length.saturating_add(self.value.len()).saturating_add(4);
        self.count.saturating_mul(entry).saturating_add(1)
    }
}
