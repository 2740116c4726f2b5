//! Every way in which servers decode the bytes of a request. Nothing here is shared with the code under test.

use http::HeaderMap;

/// Every text that some server decodes a body to: by a charset named anywhere, by the first bytes, or by
/// default.
pub fn texts(headers: &HeaderMap, body: &[u8]) -> Vec<String> {
    let mut texts = vec![String::from_utf8_lossy(body).into_owned(), latin1(body)];
    texts.extend([utf16(body, false), utf16(body, true), utf32(body, false), utf32(body, true)]);
    let is_utf7 = headers.iter().any(|(name, value)| {
        let name = name.as_str().replace('_', "-");
        let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        name == "content-type" && value.contains("charset") && value.contains("utf-7")
    });
    if is_utf7 {
        texts.push(utf7(body));
    }
    for text in &mut texts {
        // Most readers skip a byte order mark.
        *text = text.trim_start_matches('\u{feff}').to_owned();
    }
    texts
}

/// Every text that some server decodes a query to: the whole query, and each value.
pub fn query_texts(query: &str) -> Vec<String> {
    let decoded = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, after @ ..] = rest {
            let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
            match hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                Some(byte) => (bytes.push(byte), rest = &after[2..]).0,
                None => (bytes.push(*first), rest = after).0,
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let values = query.split(['&', ';']).filter_map(|pair| pair.split_once('='));
    let values = values.map(|(_, value)| decoded(value));
    std::iter::once(decoded(query)).chain(values).collect()
}

fn latin1(body: &[u8]) -> String {
    body.iter().map(|byte| char::from(*byte)).collect()
}

fn utf16(body: &[u8], big: bool) -> String {
    let unit = |pair: &[u8]| {
        let pair = [pair[0], pair[1]];
        if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    let units: Vec<u16> = body.chunks_exact(2).map(unit).collect();
    String::from_utf16_lossy(&units)
}

fn utf32(body: &[u8], big: bool) -> String {
    let unit = |four: &[u8]| {
        let four = [four[0], four[1], four[2], four[3]];
        let unit = if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) };
        char::from_u32(unit).unwrap_or('\u{fffd}')
    };
    body.chunks_exact(4).map(unit).collect()
}

/// UTF-7 as iconv-lite reads it: units that cannot be decoded are left out.
fn utf7(body: &[u8]) -> String {
    let mut text = String::new();
    let mut bytes = body.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'+' {
            text.push(char::from(byte));
            continue;
        }
        if bytes.next_if_eq(&b'-').is_some() {
            text.push('+');
            continue;
        }
        let (mut bits, mut count, mut units) = (0u32, 0, Vec::new());
        while let Some(digit) = bytes.peek().and_then(|byte| digit(*byte)) {
            bytes.next();
            bits = (bits << 6) | digit;
            count += 6;
            if count >= 16 {
                count -= 16;
                units.push((bits >> count) as u16);
                bits &= (1 << count) - 1;
            }
        }
        text.push_str(&String::from_utf16_lossy(&units));
        bytes.next_if_eq(&b'-');
    }
    text
}

fn digit(byte: u8) -> Option<u32> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    digits.iter().position(|digit| *digit == byte).map(|at| at as u32)
}
