//! Maps positions in a text with substitutions to the original text.

/// The substitutions in a text, so that findings refer to the original positions.
#[derive(Debug, Default)]
pub struct SourceMap {
    /// In the order of the text. Before the first one, positions are unchanged.
    stretches: Vec<SourceMapEntry>,
}

/// A stretch of the new text, up to the next one.
#[derive(Debug, Clone, Copy)]
struct SourceMapEntry {
    /// Its start in the new text: line and column.
    new: (u32, u32),
    /// The corresponding position in the original.
    old: (u32, u32),
    /// Whether it was substituted; then all of it maps to one position.
    put: bool,
}

impl SourceMap {
    /// Records the start of substituted text.
    pub fn mark_replaced(&mut self, new: (u32, u32), old: (u32, u32)) {
        self.stretches.push(SourceMapEntry { new, old, put: true });
    }

    /// Records the start of unchanged text.
    pub fn mark_unchanged(&mut self, new: (u32, u32), old: (u32, u32)) {
        self.stretches.push(SourceMapEntry { new, old, put: false });
    }

    pub fn original_position(&self, line: u32, column: u32) -> (u32, u32) {
        let after = self.stretches.partition_point(|entry| entry.new <= (line, column));
        let Some(entry) = after.checked_sub(1).map(|at| self.stretches[at]) else {
            return (line, column);
        };
        if entry.put {
            return entry.old;
        }
        let lines = line - entry.new.0;
        // Only the first line of a stretch is shifted sideways.
        if lines > 0 {
            return (entry.old.0 + lines, column);
        }
        (entry.old.0, entry.old.1 + column - entry.new.1)
    }
}
