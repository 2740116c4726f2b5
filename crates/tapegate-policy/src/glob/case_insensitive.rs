//! Case-insensitive globs.

use tapegate_core::lenient::reading::fold_case;

use super::{Glob, GlobLetter};

impl Glob {
    /// The same glob for names that [`fold_case`] has folded.
    pub(crate) fn case_folded(&self) -> Self {
        let fold = |text: &str| fold_case(text).into_owned();
        let pieces = self.pieces.iter().map(|piece| piece.map(fold, in_either_case)).collect();
        let decoded = self.decoded.iter().map(Self::case_folded).collect();
        Self { text: self.text.clone(), pieces, decoded }
    }
}

/// A non-literal character pattern, made case-insensitive.
fn in_either_case(letter: &GlobLetter) -> GlobLetter {
    match letter {
        GlobLetter::Class { not, ranges, .. } => {
            GlobLetter::Class { not: *not, ranges: ranges.clone(), any_case: true }
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_either_case_are_the_same() {
        for (glob, name) in [
            ("DELETE", "Delete"),
            ("/Etc/*", "/ETC/passwd"),
            ("[A-C]x?", "bXy"),
            ("[!a]x", "Ax"),
            ("*ÜR", "fu\u{308}r"),
            ("HTTP://A.example/*", "http://a.EXAMPLE/x"),
        ] {
            let folded = Glob::parse(glob).unwrap().case_folded();
            assert!(folded.matches_decoded(&fold_case(name)), "{glob} {name}");
        }
        assert!(!Glob::parse("[A-C]").unwrap().case_folded().matches("d"));
    }
}
