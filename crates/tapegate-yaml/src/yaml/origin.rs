//! Where a place in a text stood before some of the text was replaced.

/// What has been replaced in a text, so that people are told places as they see them.
#[derive(Debug, Default)]
pub struct Origin {
    /// In the order of the text. Before the first, nothing has moved.
    stretches: Vec<Stretch>,
}

/// A stretch of the new text, up to the next one.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// Line and column where it begins in the new text.
    new: (u32, u32),
    /// Line and column of that in the old text.
    old: (u32, u32),
    /// Whether it was put there; all of it then stood in one place.
    put: bool,
}

impl Origin {
    /// Notes that from here on the text is one that was put there.
    pub fn put(&mut self, new: (u32, u32), old: (u32, u32)) {
        self.stretches.push(Stretch { new, old, put: true });
    }

    /// Notes that from here on the text is as it was.
    pub fn keep(&mut self, new: (u32, u32), old: (u32, u32)) {
        self.stretches.push(Stretch { new, old, put: false });
    }

    /// Where a place stood.
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
