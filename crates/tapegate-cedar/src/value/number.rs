//! JSON numbers as Cedar values.

use cedar_policy::RestrictedExpression;
use tapegate_core::json::Number;
use tapegate_core::lenient::numbers;

use crate::types::CedarType;

/// The number of decimal places of a Cedar decimal.
const DECIMAL_DIGITS: i64 = 4;

/// The other readings of a number: in floating point, truncated, in 32 bits.
pub(super) fn readings(text: &[u8], kind: &CedarType) -> Vec<(String, RestrictedExpression)> {
    let own = Number::read(text);
    let others = numbers::of_number(text).numbers.into_iter();
    let others = others.filter(|other| Number::read(other.as_bytes()) != own);
    others.filter_map(|other| number(other.as_bytes(), kind).map(|made| (other, made))).collect()
}

/// A number as the given type. If the type is not known, it is a `Long` if whole, a decimal if that
/// can hold it, and otherwise text.
pub(super) fn number(text: &[u8], kind: &CedarType) -> Option<RestrictedExpression> {
    let long = || scaled(text, 0).map(RestrictedExpression::new_long);
    let decimal = || scaled(text, DECIMAL_DIGITS).map(decimal);
    match kind {
        CedarType::Long => long(),
        CedarType::Decimal => decimal(),
        _ => long().or_else(decimal).or_else(|| {
            Some(RestrictedExpression::new_string(String::from_utf8_lossy(text).into_owned()))
        }),
    }
}

/// A number times a power of ten, if the result is a whole number of 64 bits.
fn scaled(text: &[u8], power: i64) -> Option<i64> {
    const DIGITS_MAX: i64 = 19;
    let number = Number::read(text);
    let zeros = number.power().ok()?.checked_add(power)?;
    let count = i64::try_from(number.digits().count()).ok()?;
    if count == 0 {
        return Some(0);
    }
    // Bounds the power of ten before it is computed: `1e999999999` is a short text.
    if zeros < 0 || count.checked_add(zeros)? > DIGITS_MAX {
        return None;
    }
    let digits = number.digits().fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    let value = digits * 10_i128.pow(u32::try_from(zeros).ok()?);
    i64::try_from(if number.is_negative() { -value } else { value }).ok()
}

fn decimal(scaled: i64) -> RestrictedExpression {
    let sign = if scaled < 0 { "-" } else { "" };
    let (whole, fraction) = (scaled.unsigned_abs() / 10_000, scaled.unsigned_abs() % 10_000);
    RestrictedExpression::new_decimal(format!("{sign}{whole}.{fraction:04}"))
}
