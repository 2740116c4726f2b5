//! Byte sequences generated as they are sent.

/// Bytes with repeated runs, so that a very large message takes little memory.
#[derive(Debug, Default)]
pub(super) struct RepeatedBytes {
    runs: Vec<ByteRun>,
    /// The run being sent, and how much of it was sent.
    run: usize,
    sent: usize,
    left: usize,
}

/// The same bytes, repeated.
#[derive(Debug)]
struct ByteRun {
    unit: Box<[u8]>,
    bytes: usize,
}

impl RepeatedBytes {
    /// Creates a parcel of the given bytes.
    pub(super) fn of(parts: &[&[u8]]) -> Self {
        Self::default().followed_by(parts.concat(), 1)
    }

    /// Appends `unit` repeated `times` times.
    pub(super) fn followed_by(mut self, unit: Vec<u8>, times: usize) -> Self {
        let bytes = unit.len().saturating_mul(times);
        if bytes > 0 {
            self.left = self.left.saturating_add(bytes);
            self.runs.push(ByteRun { unit: unit.into(), bytes });
        }
        self
    }

    /// How many bytes are still to be sent.
    pub(super) fn remaining_bytes(&self) -> usize {
        self.left
    }

    /// How many bytes of memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.runs.iter().map(|run| run.unit.len()).sum()
    }

    /// Replaces the contents of `out` with the next bytes, up to `bytes_max`.
    pub(super) fn take(&mut self, bytes_max: usize, out: &mut Vec<u8>) {
        out.clear();
        while out.len() < bytes_max {
            let Some(run) = self.runs.get(self.run) else { break };
            // A unit is never empty: `followed_by` drops empty runs.
            let start = self.sent % run.unit.len();
            let count = (run.unit.len() - start).min(bytes_max - out.len());
            out.extend_from_slice(&run.unit[start..start + count]);
            self.sent += count;
            if self.sent >= run.bytes {
                (self.run, self.sent) = (self.run + 1, 0);
            }
        }
        self.left -= out.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn pieces_of_any_size_make_the_whole(
            runs in proptest::collection::vec(("[a-z]{0,5}", 0usize..5), 0..5),
            sizes in proptest::collection::vec(1usize..9, 1..20),
        ) {
            let mut payload = RepeatedBytes::default();
            let mut whole = String::new();
            for (unit, times) in &runs {
                payload = payload.followed_by(unit.clone().into_bytes(), *times);
                whole.push_str(&unit.repeat(*times));
            }
            let (mut got, mut piece) = (Vec::new(), Vec::new());
            for size in sizes.iter().cycle().take(200) {
                proptest::prop_assert_eq!(payload.remaining_bytes(), whole.len() - got.len());
                payload.take(*size, &mut piece);
                proptest::prop_assert!(piece.len() <= *size);
                got.extend_from_slice(&piece);
            }
            proptest::prop_assert_eq!(got, whole.into_bytes());
        }
    }
}
