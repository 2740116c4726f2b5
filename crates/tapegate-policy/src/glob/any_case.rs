//! A glob for which the case of letters does not count.

use tapegate_core::lenient::reading::fold_case;

use super::{Glob, Letter, Piece};

impl Glob {
    /// The same glob for names that [`fold_case`] has folded.
    pub(crate) fn any_case(&self) -> Self {
        let pieces = self.pieces.iter().map(fold).collect();
        let decoded = self.decoded.iter().map(Self::any_case).collect();
        Self { text: self.text.clone(), pieces, decoded }
    }
}

fn fold(piece: &Piece) -> Piece {
    match piece {
        Piece::Plain(text) => Piece::Plain(fold_case(text).into_owned()),
        Piece::Open(letters) => {
            let (mut out, mut run) = (Vec::new(), String::new());
            for letter in letters {
                match letter {
                    Letter::Is(letter) => run.push(*letter),
                    open => {
                        out.extend(fold_case(&run).chars().map(Letter::Is));
                        run.clear();
                        out.push(match open {
                            Letter::Class { not, ranges, .. } => {
                                Letter::Class { not: *not, ranges: ranges.clone(), any_case: true }
                            }
                            open => open.clone(),
                        });
                    }
                }
            }
            out.extend(fold_case(&run).chars().map(Letter::Is));
            Piece::Open(out)
        }
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
            let folded = Glob::parse(glob).unwrap().any_case();
            assert!(folded.matches_decoded(&fold_case(name)), "{glob} {name}");
        }
        assert!(!Glob::parse("[A-C]").unwrap().any_case().matches("d"));
    }
}
