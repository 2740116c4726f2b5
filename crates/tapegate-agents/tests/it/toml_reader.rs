//! A second reader of TOML that shares nothing with ours: that of Python.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use serde_json::Value;

/// Reads a text, as JSON, from each line, and writes what TOML it is. Dates become texts.
const SCRIPT: &str = "
import json, sys, tomllib
for line in sys.stdin:
    try:
        answer = {'value': tomllib.loads(json.loads(line))}
    except tomllib.TOMLDecodeError as error:
        answer = {'error': str(error)}
    print(json.dumps(answer, default=str), flush=True)
";

/// A running Python, for all texts of a test process.
struct TomlReader {
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

static READER: OnceLock<Mutex<TomlReader>> = OnceLock::new();

fn start() -> Mutex<TomlReader> {
    let mut command = Command::new("python3");
    command.args(["-X", "utf8", "-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    Mutex::new(TomlReader { _child: child, input, output: BufReader::new(output) })
}

/// What Python reads in a text.
pub(crate) fn read(text: &str) -> Value {
    let mut reader = READER.get_or_init(start).lock().unwrap();
    writeln!(reader.input, "{}", Value::from(text)).unwrap();
    let mut line = String::new();
    reader.output.read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert!(answer["error"].is_null(), "{}\n{text}", answer["error"]);
    answer["value"].clone()
}
