//! Tools of different servers with confusable names.
//!
//! An agent picks tools by name. A server whose tool has the same name as another server's, or
//! nearly so, may receive calls that were meant for the other.

use std::collections::BTreeMap;

use super::lock::PinLock;
use crate::gated_requests::OfferKind;

/// Tools with confusable names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowedTools {
    /// Server and name of each.
    pub tools: Vec<(String, String)>,
    /// Whether the names are identical.
    pub exact: bool,
}

/// Finds tools with confusable names.
pub fn find_shadows(lock: &PinLock) -> Vec<ShadowedTools> {
    let mut by_look: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (server, pinned) in &lock.servers {
        for name in pinned.offers.get(&OfferKind::Tool).into_iter().flatten().map(|(name, _)| name)
        {
            by_look.entry(visual_form(name)).or_default().push((server.clone(), name.clone()));
        }
    }
    let several = by_look.into_values().filter(|tools| tools.len() > 1);
    let shadow = |tools: Vec<(String, String)>| {
        let exact = tools.windows(2).all(|pair| pair[0].1 == pair[1].1);
        ShadowedTools { tools, exact }
    };
    several.map(shadow).collect()
}

/// A form that all names that look alike have in common.
pub(super) fn visual_form(name: &str) -> String {
    name.chars()
        .filter(|letter| !is_invisible(*letter))
        .flat_map(char::to_lowercase)
        .map(base_letter)
        .collect()
}

/// White space and invisible characters.
fn is_invisible(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// The letter that a character looks like.
fn base_letter(letter: char) -> char {
    let wide = u32::from(letter).wrapping_sub(0xff01);
    if wide < 0x5e {
        // Full-width forms are in ASCII order.
        return base_letter(char::from(b'!' + wide as u8).to_ascii_lowercase());
    }
    match letter {
        'а' | 'α' | 'à'..='å' => 'a',
        'с' | 'ϲ' | 'ç' => 'c',
        'ԁ' => 'd',
        'е' | 'ё' | 'è'..='ë' | 'ε' => 'e',
        'һ' => 'h',
        'і' | 'ι' | 'ı' | 'ì'..='ï' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' | '1' | '|' => 'l',
        'м' => 'm',
        'п' | 'ñ' | 'η' => 'n',
        'о' | 'ο' | '0' | 'ò'..='ö' | 'ø' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' => 'r',
        'ѕ' | 'ſ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ù'..='ü' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' | 'ý' | 'ÿ' => 'y',
        '-' | '.' | '‐'..='―' | '−' | '․' => '_',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tools: &[(&str, &str)]) -> Vec<(usize, bool)> {
        let mut lock = PinLock::default();
        let mut pages: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (server, name) in tools {
            pages.entry(server).or_default().push(format!("{{\"name\":\"{name}\"}}"));
        }
        for (server, items) in pages {
            let page = format!("{{\"tools\":[{}]}}", items.join(","));
            lock.learn(server, &[page.as_bytes()]);
        }
        find_shadows(&lock).iter().map(|shadow| (shadow.tools.len(), shadow.exact)).collect()
    }

    #[test]
    fn the_same_name_on_two_servers_is_found() {
        assert_eq!(found(&[("a", "read"), ("b", "read"), ("b", "write")]), [(2, true)]);
        assert_eq!(found(&[("a", "read"), ("b", "write")]), []);
    }

    #[test]
    fn names_that_look_alike_are_found() {
        for twin in
            ["Read_File", "read-file", "rеad_file", "read_file\u{200b}", " read_file", "read_fi1e"]
        {
            assert_eq!(found(&[("a", "read_file"), ("b", twin)]), [(2, false)], "{twin}");
            assert_eq!(found(&[("a", "read_file"), ("a", twin)]), [(2, false)], "{twin}");
        }
        assert_eq!(found(&[("a", "ｒｅａｄ"), ("b", "READ")]), [(2, false)]);
        assert_eq!(found(&[("a", "mail"), ("b", "mall")]), []);
    }
}
