//! Maps positions in a text with substitutions to the original text.

/// The substitutions in a text, so that findings refer to the original positions.
#[derive(Debug, Default)]
pub struct Origin {
    /// In the order of the text. Before the first one, positions are unchanged.
    stretches: Vec<Stretch>,
}

/// A stretch of the new text, up to the next one.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// Its start in the new text: line and column.
    new: (u32, u32),
    /// The corresponding position in the original.
    old: (u32, u32),
    /// Whether it was substituted; then all of it maps to one position.
    put: bool,
}

impl Origin {
    /// Records the start of substituted text.
    pub fn put(&mut self, new: (u32, u32), old: (u32, u32)) {
        self.stretches.push(Stretch { new, old, put: true });
    }

    /// Records the start of unchanged text.
    pub fn keep(&mut self, new: (u32, u32), old: (u32, u32)) {
        self.stretches.push(Stretch { new, old, put: false });
    }

    /// The original position.
    pub fn of(&self, line: u32, column: u32) -> (u32, u32) {
        let after = self.stretches.partition_point(|stretch| stretch.new <= (line, column));
        let Some(stretch) = after.checked_sub(1).map(|at| self.stretches[at]) else {
            return (line, column);
        };
        if stretch.put {
            return stretch.old;
        }
        let lines = line - stretch.new.0;
        if lines > 0 {
            return (stretch.old.0 + lines, column);
        }
        (stretch.old.0, stretch.old.1 + column - stretch.new.1)
    }
}
