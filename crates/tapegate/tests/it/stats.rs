//! `tapegate stats`

use serde_json::Value;

use crate::show::{command, compare, out};

#[test]
fn tapes_are_summed_up_at_every_width() {
    for columns in [80, 120] {
        let done = command(&columns.to_string()).args(["stats", "tape.jsonl"]).output().unwrap();
        compare(&format!("stats-{columns}.txt"), &out(&done), columns);
    }
}

#[test]
fn json_has_every_number_and_several_tapes_are_summed() {
    let stats = |tapes: &[&str]| -> Value {
        let done = command("80").args(["stats", "--format", "json"]).args(tapes).output().unwrap();
        serde_json::from_str(&out(&done)).unwrap()
    };
    let (one, two) = (stats(&["tape.jsonl"]), stats(&["tape.jsonl", "tape.jsonl"]));
    assert_eq!((&one["messages"], &two["messages"]), (&13.into(), &26.into()));
    let total = &one["total"];
    assert_eq!((&total["count"], &total["errors"]), (&6.into(), &2.into()));
    assert_eq!((&total["denied"], &total["unanswered"]), (&1.into(), &1.into()));
    assert_eq!((&one["anomalies"], &one["notifications"]), (&1.into(), &2.into()));
    let call = one["requests"].as_array().unwrap().iter().find(|it| it["name"] == "write_file");
    let latency = &call.unwrap()["latency_ms"];
    assert_eq!((&latency["max"], &latency["count"]), (&2011.into(), &1.into()));
}
