//! Hosts of URLs as resolvers look them up: names in ASCII, addresses in their usual notation.
//!
//! A name has many spellings: `münchen.de` is `xn--mnchen-3ya.de`, letters may be full-width or
//! upper case, an ideographic full stop is a dot, and a soft hyphen is ignored. The canonical form
//! is the ASCII one of the URL standard. Names that the standard rejects are kept, since some
//! reader accepts them.

// Addresses only: `std::net` would also bring in sockets, which decision code must not use.
use core::net::{Ipv4Addr, Ipv6Addr};

use tapegate_core::lenient::spelling::nfkc;

use super::UriReader;
use super::punycode;

/// The prefix of a label in Punycode.
const ENCODED_START: &str = "xn--";

/// The zeros of the decimal digits that Python reads as numbers and NFKC does not convert. Nine more
/// digits follow each.
const ZEROS: [u32; 58] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6,
    0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50,
    0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x104A0,
    0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0,
    0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x11F50, 0x16A60, 0x16B50, 0x1E140,
    0x1E2F0, 0x1E950,
];

/// A host without user name and default port, in lower-case ASCII; an address in its usual
/// notation.
pub(super) fn normal_host(host: &str, default: Option<u16>, reader: UriReader) -> String {
    // The last `@`, as in the standard: in `http://a@b@c/` the host is `c`.
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let (name, port) = split_port(host);
    let port = match port_number(port) {
        _ if port.is_empty() => String::new(),
        Some(port) if Some(port) == default => String::new(),
        Some(port) => format!(":{port}"),
        None => format!(":{port}"),
    };
    let name = ascii_name(name, reader);
    let name = name.trim_end_matches('.');
    let six = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let six = six.and_then(|name| name.parse::<Ipv6Addr>().ok());
    match (six, ipv4(name)) {
        (Some(address), _) => match address.to_ipv4_mapped() {
            // `[::ffff:127.0.0.1]` reaches the same machine as `127.0.0.1`.
            Some(four) => format!("{four}{port}"),
            None => format!("[{address}]{port}"),
        },
        (None, Some(address)) => format!("{address}{port}"),
        (None, None) => format!("{name}{port}"),
    }
}

/// The host of a scheme without known hosts, as URL parsers write it: without an empty user name,
/// password or port, and without zeros before a port.
pub(super) fn opaque_host(host: &str) -> String {
    let (user, host) = host.rsplit_once('@').unwrap_or(("", host));
    let user = user.strip_suffix(':').unwrap_or(user);
    let (name, port) = split_port(host);
    let port = match port.parse::<u16>() {
        _ if port.is_empty() => String::new(),
        Ok(port) => format!(":{port}"),
        Err(_) => format!(":{port}"),
    };
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    format!("{user}{name}{port}")
}

/// The name or address of a host, and its port without the colon.
fn split_port(host: &str) -> (&str, &str) {
    // A colon inside brackets belongs to an IPv6 address.
    let port_at = host.rfind(':').filter(|at| !host[*at..].contains(']'));
    let (name, port) = host.split_at(port_at.unwrap_or(host.len()));
    (name, port.trim_start_matches(':'))
}

/// A port as the most lenient reader takes it: Python's `int` accepts blanks around the digits,
/// `_` between them, and the digits of every script.
fn port_number(text: &str) -> Option<u16> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let dropped = |letter: char| letter.is_whitespace() || letter.is_control() || letter == '_';
    let digit = |letter: char| {
        let zero = ZEROS.iter().find(|zero| (**zero..**zero + 10).contains(&u32::from(letter)));
        zero.map_or(Some(letter), |zero| char::from_digit(u32::from(letter) - zero, 10))
    };
    let digits: Option<String> =
        nfkc(text).chars().filter(|letter| !dropped(*letter)).map(digit).collect();
    digits?.parse().ok()
}

/// The same host in the other form: Unicode if it is in ASCII, and ASCII if it is not; `None` if it
/// has only one form.
pub(super) fn other_form(host: &str) -> Option<String> {
    let form = match host.is_ascii() {
        true if host.contains(ENCODED_START) => unicode_name(host, UriReader::Url),
        true => return None,
        false => ascii_name(host, UriReader::Url),
    };
    (form != host).then_some(form)
}

/// Whether a label of a host may be in Punycode.
pub(super) fn may_be_encoded(host: &str) -> bool {
    host.contains(ENCODED_START)
}

/// A name in the form that is looked up.
fn ascii_name(name: &str, reader: UriReader) -> String {
    if name.is_ascii() && !name.to_ascii_lowercase().contains(ENCODED_START) {
        return name.to_ascii_lowercase();
    }
    let name = unicode_name(name, reader);
    let labels = name.split('.').map(|label| match label.is_ascii() {
        true => label.to_owned(),
        false => punycode::encode(label)
            .map_or_else(|| label.to_owned(), |label| format!("{ENCODED_START}{label}")),
    });
    labels.collect::<Vec<_>>().join(".")
}

/// A name with every label in Unicode, as it is displayed.
fn unicode_name(name: &str, reader: UriReader) -> String {
    let mapped = map_name(name, reader);
    if !mapped.contains(ENCODED_START) {
        return mapped;
    }
    let labels = mapped.split('.').map(|label| {
        let decoded = label.strip_prefix(ENCODED_START).and_then(punycode::decode);
        // An encoded label is already mapped, unless it is crafted to be misread.
        decoded
            .filter(|label| !label.is_empty())
            .map_or_else(|| label.to_owned(), |label| self::map_name(&label, reader))
    });
    labels.collect::<Vec<_>>().join(".")
}

/// A name in lower case and normalised Unicode, without ignored characters.
fn map_name(name: &str, reader: UriReader) -> String {
    let kept: String = name.chars().filter(|letter| !is_dropped(*letter, reader)).collect();
    // Character by character: `str::to_lowercase` treats a sigma at the end of a word differently.
    let lower: String = nfkc(&kept).chars().flat_map(char::to_lowercase).collect();
    let name = nfkc(&lower).replace('\u{3002}', ".");
    match reader {
        UriReader::Url => name,
        // IDNA 2003 has neither of these letters.
        UriReader::Path | UriReader::Rest => name.replace('ß', "ss").replace('ς', "σ"),
    }
}

/// Whether resolvers ignore a character. Under IDNA 2003 they ignore joiners too.
fn is_dropped(letter: char, reader: UriReader) -> bool {
    match letter {
        '\u{200c}' | '\u{200d}' => reader != UriReader::Url,
        '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{2060}' | '\u{2064}' => {
            true
        }
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0100}'..='\u{e01ef}' => true,
        _ => false,
    }
}

/// An IPv4 address of one to four numbers, each decimal, octal or hexadecimal.
fn ipv4(host: &str) -> Option<Ipv4Addr> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some("") => Some(0),
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    };
    let numbers: Vec<u32> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, bytes) = numbers.split_last().filter(|(_, bytes)| bytes.len() < 4)?;
    let mut address = 0_u32;
    for (at, byte) in bytes.iter().enumerate() {
        address |= u32::from(u8::try_from(*byte).ok()?) << (24 - 8 * at);
    }
    let fits = bytes.is_empty() || *last < 1 << (32 - 8 * bytes.len());
    fits.then(|| Ipv4Addr::from(address | last))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_a_name_are_one_name() {
        for host in [
            "xn--mnchen-3ya.de",
            "XN--MNCHEN-3YA.DE",
            "münchen.de",
            "MÜNCHEN.de",
            "mu\u{308}nchen.de",
            "münchen\u{3002}de",
            "münchen\u{ff0e}de.",
            "münchen\u{ff61}de:80",
            "me@\u{ff4d}ünchen.de",
            "mün\u{ad}chen.de",
            "m\u{200b}ünchen.d\u{feff}e",
        ] {
            assert_eq!(normal_host(host, Some(80), UriReader::Url), "xn--mnchen-3ya.de", "{host}");
        }
        for (host, name) in [
            ("\u{ff25}XAMPLE\u{3002}com", "example.com"),
            ("ex\u{ad}ample.com", "example.com"),
            ("xn--example-.com", "example.com"),
            ("xn--.com", "xn--.com"),
            ("xn--!.com", "xn--!.com"),
            ("①②⑦.0.0.1", "127.0.0.1"),
        ] {
            assert_eq!(normal_host(host, Some(80), UriReader::Url), name, "{host}");
        }
    }

    #[test]
    fn resolvers_of_2003_read_some_letters_differently() {
        assert_eq!(normal_host("straße.de", Some(80), UriReader::Url), "xn--strae-oqa.de");
        assert_eq!(normal_host("straße.de", Some(80), UriReader::Path), "strasse.de");
        assert_eq!(normal_host("xn--strae-oqa.de", Some(80), UriReader::Path), "strasse.de");
        assert_eq!(normal_host("a\u{200d}b.de", Some(80), UriReader::Path), "ab.de");
    }

    #[test]
    fn a_name_has_another_form_if_it_is_not_english() {
        assert_eq!(other_form("xn--mnchen-3ya.de").as_deref(), Some("münchen.de"));
        assert_eq!(other_form("münchen.de").as_deref(), Some("xn--mnchen-3ya.de"));
        assert_eq!(other_form("a.example"), None);
        assert_eq!(other_form("xn--!"), None);
    }

    proptest! {
        #[test]
        fn a_name_that_was_brought_into_its_form_stays_so(
            name in "[a-zßüσς\u{ad}。\u{308}\u{ff41}\u{ff0e}É例]{0,12}",
        ) {
            for reader in [UriReader::Url, UriReader::Path] {
                let once = ascii_name(&name, reader);
                prop_assert_eq!(ascii_name(&once, reader), once);
            }
        }

        #[test]
        fn both_forms_of_a_name_are_one_name(name in "[a-züσ例é]{1,12}") {
            if let Some(other) = other_form(&name) {
                prop_assert_eq!(normal_host(&other, Some(80), UriReader::Url), normal_host(&name, Some(80), UriReader::Url));
            }
        }
    }
}
