//! Which of two numbers is the greater, to the last digit.

use std::cmp::Ordering;

use tapegate_core::json::Number;

/// How `one` compares to `two`; `None` if a power of ten is beyond counting.
pub(super) fn order(one: &Number<'_>, two: &Number<'_>) -> Option<Ordering> {
    let (a, b) = (sign(one), sign(two));
    if a != b || a == 0 {
        return Some(a.cmp(&b));
    }
    let size = size(one)?.cmp(&size(two)?).then_with(|| one.digits().cmp(two.digits()));
    Some(if a < 0 { size.reverse() } else { size })
}

fn sign(number: &Number<'_>) -> i8 {
    match (number.digits().next(), number.is_negative()) {
        (None, _) => 0,
        (Some(_), true) => -1,
        (Some(_), false) => 1,
    }
}

/// Where the first digit stands, counted from the point.
fn size(number: &Number<'_>) -> Option<i128> {
    let power = number.power().ok()?;
    Some(i128::from(power) + number.digits().count() as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_to_the_last_digit() {
        let sorted = [
            "-1e400",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-1",
            "-1e-400",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000000001",
            "1",
            "9",
            "10",
            "10.5",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551616",
            "1e400",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                let (one, two) = (Number::read(a.as_bytes()), Number::read(b.as_bytes()));
                assert_eq!(order(&one, &two), Some(i.cmp(&j)), "{a} {b}");
            }
        }
        let same =
            |a: &str, b: &str| order(&Number::read(a.as_bytes()), &Number::read(b.as_bytes()));
        assert_eq!(same("1e2", "100.0"), Some(Ordering::Equal));
        assert_eq!(same("-0", "0e9"), Some(Ordering::Equal));
        assert_eq!(same("1e99999999999999999999", "1"), None);
    }
}
