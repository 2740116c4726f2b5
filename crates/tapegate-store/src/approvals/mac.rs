//! Message authentication codes for files.
//!
//! The code is the last member of the object and covers every byte before it, the kind of the file
//! and the request's id, so a file is not valid under another name.

use crate::user_state::ProjectKey;

/// Separates this use of the project's key from every other.
const CONTEXT: &str = "tapegate approvals v1";
const BEFORE: &[u8] = b",\"mac\":\"";
const AFTER: &[u8] = b"\"}\n";
const DIGITS: usize = 64;

/// Seals files and verifies seals.
#[derive(Clone)]
pub(super) struct Sealer([u8; 32]);

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(…)")
    }
}

impl Sealer {
    pub(super) fn new(key: &ProjectKey) -> Self {
        Self(key.derive(CONTEXT))
    }

    /// Completes an unterminated object: `{"a":1` becomes `{"a":1,"mac":"…"}`.
    pub(super) fn seal(&self, kind: &str, id: &str, mut unfinished: Vec<u8>) -> Vec<u8> {
        let code = self.code(kind, id, &unfinished).to_hex();
        for part in [BEFORE, code.as_bytes(), AFTER] {
            unfinished.extend_from_slice(part);
        }
        unfinished
    }

    /// Whether a file of this kind about this request was sealed with our key.
    pub(super) fn is_sealed(&self, kind: &str, id: &str, file: &[u8]) -> bool {
        let Some((rest, code)) = split(file) else { return false };
        // Hashes are compared in constant time.
        blake3::Hash::from_hex(code).is_ok_and(|code| code == self.code(kind, id, rest))
    }

    pub(super) fn code(&self, kind: &str, id: &str, bytes: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in [kind.as_bytes(), id.as_bytes(), bytes] {
            // With their lengths, or bytes of one part could count as part of the next.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize()
    }
}

/// Splits a file into the bytes that the code covers, and the code.
fn split(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let file = file.strip_suffix(AFTER)?;
    let (rest, code) = file.split_at_checked(file.len().checked_sub(DIGITS)?)?;
    Some((rest.strip_suffix(BEFORE)?, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_fits_only_the_same_bytes_kind_id_and_key() {
        let sealer = Sealer::new(&ProjectKey::new([1; 32]));
        let file = sealer.seal("request", "ap_x", b"{\"a\":1".to_vec());
        assert!(sealer.is_sealed("request", "ap_x", &file));
        assert!(!sealer.is_sealed("decision", "ap_x", &file));
        assert!(!sealer.is_sealed("request", "ap_y", &file));
        assert!(!Sealer::new(&ProjectKey::new([2; 32])).is_sealed("request", "ap_x", &file));
        for at in 0..file.len() {
            let mut edited = file.clone();
            edited[at] ^= 1;
            assert!(!sealer.is_sealed("request", "ap_x", &edited), "{at}");
            assert!(!sealer.is_sealed("request", "ap_x", &file[..at]), "{at}");
        }
        assert!(tapegate_core::json::check(&file).is_ok());
    }
}
