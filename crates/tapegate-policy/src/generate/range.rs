//! Rounds the bounds of numbers to values that a person would choose.

/// Larger numbers are not rounded, because digits would be lost.
const ROUNDED_MAX: f64 = 1e15;

/// The minimum and maximum, rounded outwards; `None` if they cannot be.
pub(super) fn round_outward(least: &str, most: &str) -> Option<(String, String)> {
    let (least, most): (f64, f64) = (least.parse().ok()?, most.parse().ok()?);
    if !(least.abs() <= ROUNDED_MAX && most.abs() <= ROUNDED_MAX) {
        return None;
    }
    let low = if least >= 0.0 { "0".to_owned() } else { format!("-{}", round_up(-least)) };
    let high = if most <= 0.0 { "0".to_owned() } else { round_up(most) };
    Some((low, high))
}

/// The smallest of 1, 2, 5, 10, 20, 50, … that is not below a number.
fn round_up(number: f64) -> String {
    let (mut step, mut power) = (1.0, 1.0);
    let mut factors = [2.0, 5.0, 10.0].into_iter().cycle();
    while step < number {
        let factor = factors.next().unwrap_or(10.0);
        step = power * factor;
        if factor > 5.0 {
            power = step;
        }
    }
    format!("{step:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_rounded_away_from_each_other() {
        let of =
            |least, most| round_outward(least, most).map(|(low, high)| format!("{low}..{high}"));
        assert_eq!(of("3", "40").as_deref(), Some("0..50"));
        assert_eq!(of("0.5", "0.7").as_deref(), Some("0..1"));
        assert_eq!(of("-3", "1000").as_deref(), Some("-5..1000"));
        assert_eq!(of("-30", "-10").as_deref(), Some("-50..0"));
        assert_eq!(of("1", "1e300"), None);
        assert_eq!(of("1", "999999999999").as_deref(), Some("0..1000000000000"));
    }
}
