//! Punycode (RFC 3492): the ASCII encoding of non-ASCII host name labels.

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const FIRST_BIAS: u32 = 72;
const FIRST_CODE: u32 = 0x80;
/// The longest text that is decoded or encoded. A valid label has at most 63 bytes, but some
/// readers accept longer ones; decoding takes quadratic time, so there must be a limit.
const LENGTH_MAX: usize = 1_024;

/// Decodes a label, without its `xn--`; `None` if it is invalid.
pub(super) fn decode(label: &str) -> Option<String> {
    if label.len() > LENGTH_MAX || !label.is_ascii() {
        return None;
    }
    let (plain, deltas) = label.rsplit_once('-').unwrap_or(("", label));
    let mut letters: Vec<char> = plain.chars().collect();
    let (mut code, mut at, mut bias) = (FIRST_CODE, 0_u32, FIRST_BIAS);
    let mut digits = deltas.bytes();
    while digits.len() > 0 {
        let before = at;
        let (mut weight, mut position) = (1_u32, BASE);
        loop {
            let digit = digit_of(digits.next()?)?;
            at = at.checked_add(digit.checked_mul(weight)?)?;
            let threshold = threshold(position, bias);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(BASE - threshold)?;
            position += BASE;
        }
        let count = u32::try_from(letters.len()).ok()? + 1;
        bias = adapt_bias(at - before, count, before == 0);
        code = code.checked_add(at / count)?;
        at %= count;
        letters.insert(at as usize, char::from_u32(code)?);
        at += 1;
    }
    Some(letters.into_iter().collect())
}

/// Encodes a text as a label, without the `xn--`; `None` if it is too long.
pub(super) fn encode(text: &str) -> Option<String> {
    if text.len() > LENGTH_MAX {
        return None;
    }
    let mut out: String = text.chars().filter(char::is_ascii).collect();
    let plain_count = u32::try_from(out.len()).ok()?;
    if plain_count > 0 {
        out.push('-');
    }
    let total = text.chars().count() as u64;
    let (mut code, mut delta, mut bias, mut done) = (FIRST_CODE, 0_u32, FIRST_BIAS, plain_count);
    while u64::from(done) < total {
        let next = text.chars().map(u32::from).filter(|one| *one >= code).min()?;
        delta = delta.checked_add((next - code).checked_mul(done + 1)?)?;
        code = next;
        for letter in text.chars().map(u32::from) {
            if letter < code {
                delta = delta.checked_add(1)?;
            }
            if letter == code {
                write(delta, bias, &mut out);
                bias = adapt_bias(delta, done + 1, done == plain_count);
                delta = 0;
                done += 1;
            }
        }
        delta = delta.checked_add(1)?;
        code += 1;
    }
    Some(out)
}

/// Writes a variable-length integer.
fn write(mut number: u32, bias: u32, out: &mut String) {
    let mut position = BASE;
    loop {
        let threshold = threshold(position, bias);
        if number < threshold {
            out.push(digit(number));
            return;
        }
        out.push(digit(threshold + (number - threshold) % (BASE - threshold)));
        number = (number - threshold) / (BASE - threshold);
        position += BASE;
    }
}

fn threshold(position: u32, bias: u32) -> u32 {
    position.saturating_sub(bias).clamp(T_MIN, T_MAX)
}

fn adapt_bias(delta: u32, count: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / DAMP } else { delta / 2 };
    delta += delta / count;
    let mut steps = 0;
    while delta > (BASE - T_MIN) * T_MAX / 2 {
        delta /= BASE - T_MIN;
        steps += BASE;
    }
    steps + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

fn digit(number: u32) -> char {
    char::from_digit((number + 10) % 36, 36).unwrap_or('a')
}

fn digit_of(byte: u8) -> Option<u32> {
    // Letters are 0 to 25, decimal digits 26 to 35.
    char::from(byte).to_digit(36).map(|value| (value + 26) % 36)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_are_written_as_registries_write_them() {
        for (text, label) in [
            ("münchen", "mnchen-3ya"),
            ("bücher", "bcher-kva"),
            ("ü", "tda"),
            ("straße", "strae-oqa"),
            ("例え", "r8jz45g"),
            ("правда", "80aafi6cg"),
            ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
            ("пример", "e1afmkfd"),
            ("💩", "ls8h"),
            ("abc", "abc-"),
        ] {
            assert_eq!(encode(text).as_deref(), Some(label), "{text}");
            assert_eq!(decode(label).as_deref(), Some(text), "{label}");
        }
        assert_eq!(decode("MNCHEN-3YA").as_deref(), Some("MüNCHEN"));
    }

    #[test]
    fn what_stands_for_nothing_is_told() {
        for label in ["a-!", "999999999", "zzzzzzzzzz", "a-b-0", "ü", "99999999-a"] {
            assert_eq!(decode(label).filter(|text| text.is_ascii()), None, "{label}");
        }
        assert_eq!(decode(&"a".repeat(LENGTH_MAX + 1)), None);
        assert_eq!(encode(&"a".repeat(LENGTH_MAX + 1)), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(text in any::<String>()) {
            if let Some(label) = encode(&text) {
                prop_assert_eq!(decode(&label), Some(text));
            }
        }

        #[test]
        fn no_label_makes_trouble(label in "[a-z0-9-]{0,80}") {
            if let Some(text) = decode(&label) {
                encode(&text);
            }
        }
    }
}
