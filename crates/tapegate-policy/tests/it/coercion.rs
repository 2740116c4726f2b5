//! Predicates compared with readers that convert values, as real servers do: whatever one of them
//! reads as a match, a rule that stops calls must match.

use proptest::prelude::*;
use tapegate_core::json::path::JsonPath;
use tapegate_policy::predicate::{Predicate, ValueTest};

use crate::converters::{BOOL_READERS, ConvertedValue, NUMBER_READERS};
use crate::predicate_trial;

/// A JSON value made by this test: its text and its value.
#[derive(Debug, Clone)]
struct JsonSample {
    json: String,
    value: ConvertedValue,
}

fn sample(value: ConvertedValue) -> JsonSample {
    JsonSample { json: written(&value), value }
}

fn written(value: &ConvertedValue) -> String {
    match value {
        ConvertedValue::Null => "null".to_owned(),
        ConvertedValue::Bool(value) => value.to_string(),
        ConvertedValue::Number(value) => value.to_string(),
        ConvertedValue::Text(text) => quoted(text),
        ConvertedValue::List(items) => {
            format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(","))
        }
        ConvertedValue::Map(members) => {
            let member = |(key, value): &(String, ConvertedValue)| {
                format!("{}:{}", quoted(key), written(value))
            };
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    tapegate_core::json::write_str(&mut out, text);
    String::from_utf8(out).unwrap()
}

fn value() -> impl Strategy<Value = ConvertedValue> {
    let word = prop_oneof![
        Just("true"),
        Just("True"),
        Just("yes"),
        Just("on"),
        Just("1"),
        Just("t"),
        Just("y"),
        Just("false"),
        Just("no"),
        Just("off"),
        Just("0"),
        Just("f"),
        Just(""),
        Just(" true "),
        Just("NULL"),
        Just("null"),
        Just("5000"),
        Just(" +5000 "),
        Just("0x1388"),
        Just("0b1"),
        Just("5_000"),
        Just("5e3"),
        Just("0010"),
        Just("-1"),
        Just("1.0"),
        Just("0.0"),
        Just("1e400"),
        Just("5000abc"),
        Just("99"),
    ];
    let leaf = prop_oneof![
        Just(ConvertedValue::Null),
        any::<bool>().prop_map(ConvertedValue::Bool),
        (-3i32..5).prop_map(|number| ConvertedValue::Number(f64::from(number))),
        (-1_000_000i64..1_000_000).prop_map(|number| ConvertedValue::Number(number as f64 / 8.0)),
        any::<i64>().prop_map(|number| ConvertedValue::Number(number as f64)),
        word.prop_map(|word| ConvertedValue::Text(word.to_owned())),
        "[ +-]{0,2}[0-9_]{1,6}(\\.[0-9]{1,3})?([eE][0-9])?[ a-z]{0,2}"
            .prop_map(ConvertedValue::Text),
        "[a-zA-Z0-9 ]{0,6}".prop_map(ConvertedValue::Text),
        Just(ConvertedValue::Map(Vec::new())),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(ConvertedValue::List),
            inner.prop_map(|inner| ConvertedValue::Text(written(&inner))),
        ]
    })
}

/// Arguments with the value under a key that lenient servers recognise.
fn arguments(sample: &JsonSample, key: &str, whole: bool) -> Vec<u8> {
    let object = format!("{{\"a\":1,{}:{}}}", quoted(key), sample.json);
    if whole { quoted(&object).into_bytes() } else { object.into_bytes() }
}

fn predicate(test: ValueTest, not: bool) -> Predicate {
    Predicate::new(JsonPath::read("force_it").unwrap(), "force_it".to_owned(), test, not)
}

fn one_of(json: &str) -> ValueTest {
    ValueTest::OneOf(vec![json.to_owned()])
}

fn range(min: f64, max: f64) -> ValueTest {
    ValueTest::Range { min: Some(min.to_string()), max: Some(max.to_string()) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_server_reads_as_true_or_false_is_stopped(
        value in value(), wanted in any::<bool>(),
        key in prop_oneof![Just("force_it"), Just("Force_It"), Just("forceIt"), Just("force-it"), Just("force_it\u{0}x")],
        whole in any::<bool>(),
    ) {
        let sample = sample(value);
        let arguments = arguments(&sample, key, whole);
        let test = predicate(one_of(&wanted.to_string()), false);
        let other = predicate(one_of(&(!wanted).to_string()), true);
        for reading in sample.value.unpacked() {
            for (name, read) in BOOL_READERS {
                if read(&reading) == Some(wanted) {
                    prop_assert!(test.may_hold(&arguments), "{name} reads {} as {wanted}", sample.json);
                    prop_assert!(other.may_hold(&arguments), "{name} reads {} as not {}", sample.json, !wanted);
                    // No rule forwards it by a negated test.
                    let lets = predicate(one_of(&wanted.to_string()), true);
                    prop_assert!(!lets.must_hold(&arguments), "{name} {}", sample.json);
                }
            }
        }
        let exact = sample.value == ConvertedValue::Bool(wanted) && key == "force_it" && !whole;
        prop_assert_eq!(test.must_hold(&arguments), exact);
    }

    #[test]
    fn what_a_server_reads_as_a_number_is_stopped(
        value in value(), (low, width) in (-10i32..6_000, 0i32..100), whole in any::<bool>(),
    ) {
        let (min, max) = (f64::from(low), f64::from(low + width));
        let sample = sample(value);
        let arguments = arguments(&sample, "force_it", whole);
        let test = predicate(range(min, max), false);
        let lets = predicate(range(min, max), true);
        for reading in sample.value.unpacked() {
            for (name, read) in NUMBER_READERS {
                let Some(number) = read(&reading) else { continue };
                if (min..=max).contains(&number) {
                    prop_assert!(test.may_hold(&arguments), "{name} reads {} as {number}", sample.json);
                    prop_assert!(!lets.must_hold(&arguments), "{name} reads {} as {number}", sample.json);
                    let equal = predicate(one_of(&number.to_string()), false);
                    prop_assert!(equal.may_hold(&arguments), "{name} reads {} as {number}", sample.json);
                } else {
                    prop_assert!(lets.may_hold(&arguments) || reading != sample.value, "{name} {}", sample.json);
                }
            }
        }
        let exact = matches!(sample.value, ConvertedValue::Number(number) if (min..=max).contains(&number)) && !whole;
        prop_assert_eq!(test.must_hold(&arguments), exact, "{}", sample.json);
    }

    /// Whatever must hold may hold: the exact value is one of the possible readings.
    #[test]
    fn what_must_hold_may_hold(value in value(), number in -5i32..50, not in any::<bool>(), text in "[a-z0-9 ]{0,4}") {
        let sample = sample(value);
        let arguments = arguments(&sample, "force_it", false);
        for test in [one_of("true"), one_of("null"), one_of(&quoted(&text)), one_of(&number.to_string()), range(f64::from(number), 9e9), ValueTest::Exists] {
            let predicate = predicate(test, not);
            prop_assert!(!predicate.must_hold(&arguments) || predicate.may_hold(&arguments), "{predicate} {}", sample.json);
        }
    }
}

/// The seeds of the fuzz target `predicate`.
#[test]
#[expect(clippy::disallowed_methods, reason = "the seeds are files")]
fn the_seeds_of_the_fuzz_target_are_trials_that_pass() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/predicate");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let (line, arguments) = text.split_once('\n').unwrap();
        let predicate = predicate_trial::PredicateTrial::read(line);
        let Some(predicate) = predicate else { panic!("{} has no predicate", path.display()) };
        predicate.check(arguments);
        count += 1;
    }
    assert!(count > 20, "{count} seeds");
}
