//! Hundreds of thousands of generated messages through the real binary, to a server that logs every
//! byte: what is permitted arrives, byte for byte and in order; nothing else does; and every
//! request has one answer.

use std::collections::HashMap;
use std::fs;

use crate::support::{SeededRandom, shim};

/// How many messages are sent per round.
const COUNT: usize = 200_000;
/// The variable with the number of rounds; once by default.
const ROUNDS: &str = "TAPEGATE_STRESS_ROUNDS";
/// Contained in every message that must not arrive.
const BANNED: &str = "BANNED";

/// Denies `rm*` by a rule, hides `hidden*`, permits the rest.
const POLICY: &str = "\
schema: 1
sources:
  - { id: s, kind: mcp, expose: { mode: blocklist, tools: [\"hidden*\"], prompts: [\"hidden*\"], resources: [\"hidden*\"] } }
governance:
  defaults: { action: forward }
  rules:
    - { match: \"rm*\", action: deny }
    - { match: \"args\", action: deny, arguments: { mode: \"force\" } }
";

/// A message, and what must happen to it.
struct StressMessage {
    line: Vec<u8>,
    passes: bool,
    /// The id of the only answer, as written.
    id: Option<String>,
    /// The id of a possible answer, if the line is not a message.
    maybe: Option<String>,
}

#[test]
fn nothing_reaches_the_server_that_was_not_let_through_and_every_request_has_one_answer() {
    let rounds = std::env::var(ROUNDS).map_or(1, |rounds| rounds.parse().unwrap());
    (0..rounds).for_each(|_: u32| round());
}

fn round() {
    let mut dice = SeededRandom::roll();
    let made: Vec<StressMessage> = (0..COUNT).map(|n| make(&mut dice, n)).collect();
    let sent: Vec<u8> = made.iter().flat_map(|one| one.line.iter().copied()).collect();
    let end = shim(POLICY, &["log=log", "serve"]).flags(&["--quiet"]).run(&sent).exits(0);

    let got = fs::read(end.run.folder().join("log")).unwrap();
    assert!(!String::from_utf8_lossy(&got).contains(BANNED), "something went round the gate");
    let permitted: Vec<u8> =
        made.iter().filter(|one| one.passes).flat_map(|one| one.line.iter().copied()).collect();
    let same = got.iter().zip(&permitted).take_while(|(one, two)| one == two).count();
    let around = |bytes: &[u8]| {
        let (from, to) = (same.saturating_sub(200).min(bytes.len()), (same + 200).min(bytes.len()));
        bytes[from..to].escape_ascii().to_string()
    };
    assert!(got == permitted, "got …{}…\nnot …{}…", around(&got), around(&permitted));

    let mut answers: HashMap<String, usize> = HashMap::new();
    for line in String::from_utf8(end.stdout.clone()).unwrap().lines() {
        let rest = line.split_once("\"id\":").unwrap_or_else(|| panic!("{line}")).1;
        let end = rest.find([',', '}']).unwrap();
        *answers.entry(rest[..end].to_owned()).or_default() += 1;
    }
    for one in &made {
        let shown = || one.line.escape_ascii().to_string();
        if let Some(id) = &one.id {
            assert_eq!(answers.remove(id), Some(1), "answers to {}", shown());
        }
        if let Some(id) = &one.maybe {
            assert!(answers.remove(id).is_none_or(|count| count == 1), "answers to {}", shown());
        }
    }
    answers.retain(|id, _| id != "null");
    assert!(answers.is_empty(), "nobody asked: {:?}", answers.iter().next());
}

fn make(dice: &mut SeededRandom, n: usize) -> StressMessage {
    match dice.below(10) {
        0..4 => permitted(dice, n),
        4..7 => denied(dice, n),
        _ => odd(dice, n),
    }
}

/// A unique id.
fn id(dice: &mut SeededRandom, n: usize) -> String {
    match dice.below(4) {
        0 => format!("\"s{n}\""),
        1 => format!("{n}.25"),
        2 => format!("9007199254{n}"),
        _ => n.to_string(),
    }
}

fn permitted(dice: &mut SeededRandom, n: usize) -> StressMessage {
    let id = id(dice, n);
    let padding = "p".repeat(dice.below(200) as usize);
    let (body, asks) = match dice.below(8) {
        0 => (
            format!(
                r#""id":{id},"method":"tools/call","params":{{"name":"ok{n}","arguments":{{"t":"{padding}"}}}}"#
            ),
            true,
        ),
        1 => (
            format!(
                r#""id":{id},"method":"tools/call","params":{{"arguments":{{"mode":"soft","x":[1,{{"name":"rm"}}]}},"name":"args"}}"#
            ),
            true,
        ),
        2 => (
            format!(r#""id":{id},"method":"resources/read","params":{{"uri":"file:///ok/{n}"}}"#),
            true,
        ),
        3 => (format!(r#""id":{id},"method":"prompts/get","params":{{"name":"ok\u0021"}}"#), true),
        4 => (format!(r#""id":{id},"method":"ping""#), true),
        5 => (
            format!(r#""method":"notifications/progress","params":{{"n":{n},"rm":"{padding}"}}"#),
            false,
        ),
        6 => (format!(r#""id":{id},"method":"vendor/other","params":{{"name":"rm"}}"#), true),
        _ => (
            format!(r#""id":{id},"method":"tools\/call","params":{{"name":"ok\n{padding}"}}"#),
            true,
        ),
    };
    let space = [" ", "", "\t", ""][dice.below(4) as usize];
    let end = if dice.below(10) == 0 { "\r\n" } else { "\n" };
    let line = format!("{space}{{\"jsonrpc\":\"2.0\",{space}{body}}}{end}").into_bytes();
    StressMessage { line, passes: true, id: asks.then_some(id), maybe: None }
}

/// Denied calls, spelled in equivalent ways.
fn denied(dice: &mut SeededRandom, n: usize) -> StressMessage {
    let id = id(dice, n);
    let method = ["tools/call", "tools\\/call", "\\u0074ools/call", "tools/\\u0063all"]
        [dice.below(4) as usize];
    let name = ["rm", "rm -rf", "\\u0072m", "r\\u006D", "hidden", "hidd\\u0065n_x"]
        [dice.below(6) as usize];
    let mark = format!("\"arguments\":{{\"m\":\"{BANNED}{n}\"}}");
    let body = match dice.below(5) {
        0 => format!(r#""id":{id},"method":"{method}","params":{{"name":"{name}",{mark}}}"#),
        1 => format!(
            r#""params":{{{mark},"name":"{name}","_meta":{{}}}},"id":{id},"method":"{method}""#
        ),
        2 => format!(r#""method":"prompts/get","id":{id},"params":{{"name":"{name}",{mark}}}"#),
        3 => format!(
            r#""id":{id},"method":"tools/call","params":{{"name":"args","arguments":{{"mode":"f\u006frce","m":"{BANNED}"}}}}"#
        ),
        _ => format!(
            r#""id":{id},"method":"resources/subscribe","params":{{"uri":"hidden:{BANNED}{n}"}}"#
        ),
    };
    StressMessage {
        line: format!("{{\"jsonrpc\":\"2.0\",{body}}}\n").into_bytes(),
        passes: false,
        id: Some(id),
        maybe: None,
    }
}

/// Lines with more than one reading, or none.
fn odd(dice: &mut SeededRandom, n: usize) -> StressMessage {
    let id = id(dice, n);
    let call = format!(
        r#""method":"tools/call","params":{{"name":"rm","arguments":{{"m":"{BANNED}{n}"}}}}"#
    );
    let v = r#""jsonrpc":"2.0""#;
    let (text, answered) = match dice.below(20) {
        0 => (format!("{{{v},{call}}}"), false),
        1 => (format!("{{{v},\"id\":null,{call}}}"), false),
        2 => (format!("{{{v},\"id\":{id},\"method\":\"ping\",{call}}}"), true),
        3 => (format!("{{{v},\"id\":{id},{call},\"method\":\"ping\"}}"), true),
        4 => (format!("{{{v},\"id\":{id},{call},\"params\":{{\"name\":\"ok\"}}}}"), true),
        5 => (format!("{{{v},\"id\":{id},{call},\"PARAMS\":{{\"name\":\"ok\"}}}}"), true),
        6 => (format!("{{{v},\"id\":{id},\"Method\":\"ping\",{call}}}"), true),
        7 => (format!("{{\"id\":{id},{call}}}"), true),
        8 => (format!("{{\"jsonrpc\":2.0,\"id\":{id},{call}}}"), true),
        9 => (format!("{{{v},\"method\":\"ping\"}} {{{v},\"id\":{id},{call}}}"), false),
        10 => (
            format!(
                "{{{v},\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":[\"rm\"],\"m\":\"{BANNED}\"}}}}"
            ),
            true,
        ),
        11 => (
            format!("{{{v},\"id\":{id},\"method\":\"tools/call\",\"params\":[\"{BANNED}\"]}}"),
            true,
        ),
        12 => (
            format!(
                "{{{v},\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"ok\",\"\\u006eame\":\"{BANNED}\"}}}}"
            ),
            true,
        ),
        13 => (
            format!(
                "{{{v},\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"ok\",\"arguments\":{{}},\"arguments\":{{\"m\":\"{BANNED}\"}}}}}}"
            ),
            true,
        ),
        14 => (format!("\u{feff}{{{v},{call}}}"), false),
        15 => (format!("{{{v},{call}"), false),
        16 => (format!("{{{v},\"params\":\"{BANNED}\"}}"), false),
        17 => (format!("\"{BANNED}\""), false),
        18 => (format!("{{{v},{call}}}\0"), false),
        _ => (format!("{{{v},\r{call}}}"), false),
    };
    let mut line = text.into_bytes();
    if dice.below(12) == 0 {
        // A byte that is not UTF-8, inside the marker.
        let at = line.windows(6).position(|part| part == BANNED.as_bytes()).unwrap_or(0);
        line.insert(at, 0xff);
    }
    line.push(b'\n');
    let (id, maybe) = if answered { (Some(id), None) } else { (None, Some(id)) };
    StressMessage { line, passes: false, id, maybe }
}
