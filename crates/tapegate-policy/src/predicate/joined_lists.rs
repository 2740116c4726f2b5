//! Lists joined to one text: a command from its words, or JavaScript's conversion of a list to a
//! string.

use tapegate_core::json;
use tapegate_core::lenient::reading::ScanBudget;

use super::coerce::DEPTH_MAX;
use super::scalars::number_text;

/// How the elements are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementSeparator {
    /// With commas, as JavaScript does.
    Comma,
    /// With blanks, like a command line.
    Blank,
    /// With blanks, and with quotes around words that a shell would split.
    Quoted,
}

impl ElementSeparator {
    pub(super) const ALL: [Self; 3] = [Self::Comma, Self::Blank, Self::Quoted];

    fn text(self) -> &'static str {
        if self == Self::Comma { "," } else { " " }
    }
}

/// The text of a joined list. `None` if an element is an object; `Some(None)` if the budget is used
/// up.
pub(super) fn join_list(
    list: &[u8],
    joint: ElementSeparator,
    budget: &ScanBudget,
) -> Option<Option<String>> {
    if !budget.spend(list.len()) {
        return Some(None);
    }
    inner(list, joint, 0).map(Some)
}

fn inner(list: &[u8], joint: ElementSeparator, depth: usize) -> Option<String> {
    if depth >= DEPTH_MAX {
        return None;
    }
    let mut out = String::new();
    for (index, child) in json::elements(list).enumerate() {
        let child = child.ok()?;
        if index > 0 {
            out.push_str(joint.text());
        }
        match child {
            // JavaScript joins an object as `[object Object]`, which no rule is about.
            [b'{', ..] => return None,
            [b'[', ..] => out.push_str(&inner(child, joint, depth + 1)?),
            [b'"', ..] => add(&json::string(child)?, joint, &mut out),
            // `[1,null].join()` is `1,` in JavaScript.
            b"null" => {}
            scalar => match number_text(scalar) {
                Some(number) => out.push_str(&number),
                None => out.push_str(&String::from_utf8_lossy(scalar)),
            },
        }
    }
    Some(out)
}

/// Appends a word, quoted if a shell needs that.
fn add(word: &str, joint: ElementSeparator, out: &mut String) {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "@%+=:,./-_".contains(letter);
    if joint != ElementSeparator::Quoted || !word.is_empty() && word.chars().all(plain) {
        return out.push_str(word);
    }
    out.push('\'');
    out.push_str(&word.replace('\'', "'\"'\"'"));
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_joined_as_javascript_and_shells_do() {
        let list = br#"["rm","-rf","a b",5,null,["it's"]]"#;
        let text = |joint| join_list(list, joint, &ScanBudget::new(list.len())).unwrap().unwrap();
        assert_eq!(text(ElementSeparator::Comma), "rm,-rf,a b,5,,it's");
        assert_eq!(text(ElementSeparator::Blank), "rm -rf a b 5  it's");
        assert_eq!(text(ElementSeparator::Quoted), r#"rm -rf 'a b' 5  'it'"'"'s'"#);
        assert_eq!(join_list(b"[{}]", ElementSeparator::Comma, &ScanBudget::new(9)), None);
        let spent = ScanBudget::new(0);
        spent.spend(usize::MAX);
        assert_eq!(join_list(list, ElementSeparator::Comma, &spent), Some(None));
    }
}
