//! A scripted server for tests: each argument is a step, executed in order.
//!
//! It is compiled by `tests/it/support.rs` and started as a real process behind the real binary. It
//! does not parse JSON; a request's id is found by searching for `"id":`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::Command;

fn main() {
    let input = BufReader::with_capacity(1 << 16, io::stdin());
    let mut server = FakeServer { input, log: None, held: Vec::new() };
    for step in std::env::args().skip(1) {
        let (verb, rest) = step.split_once('=').unwrap_or((&step, ""));
        // A peer that is gone ends the server, as it would end any other.
        if server.step(verb, rest).is_err() {
            std::process::exit(97);
        }
    }
}

struct FakeServer {
    input: BufReader<io::Stdin>,
    log: Option<File>,
    /// The ids of requests that are answered later.
    held: Vec<String>,
}

impl FakeServer {
    fn step(&mut self, verb: &str, rest: &str) -> io::Result<()> {
        match verb {
            // Logs the input to a file, byte for byte.
            "log" => self.log = Some(File::create(rest)?),
            "say" => put(format!("{rest}\n").as_bytes())?,
            "raw" => put(&unescape(rest))?,
            "err" => io::stderr().write_all(rest.as_bytes())?,
            "err-flood" => io::stderr().write_all(&vec![b'e'; number(rest)])?,
            // Reads lines without answering.
            "read" => (0..number(rest)).try_for_each(|_| self.line().map(drop))?,
            // Reads everything without answering.
            "eof" => while self.line()?.is_some() {},
            // Answers every request until the end.
            "serve" => while let Some(line) = self.line()? { self.answer(&line)? },
            // A server with these tools, and with a resource, a template and a prompt.
            "mcp" => while let Some(line) = self.line()? { self.as_server(&line, rest)? },
            // Answers a number of lines.
            "answer" => (0..number(rest)).try_for_each(|_| match self.line()? {
                Some(line) => self.answer(&line),
                None => Ok(()),
            })?,
            // Collects requests and answers them in reverse order.
            "reverse" => {
                self.hold(number(rest))?;
                put(&self.held.drain(..).rev().flat_map(|id| result(&id)).collect::<Vec<_>>())?;
            }
            // Echoes the input byte for byte, without waiting for complete lines.
            "copy" => self.copy()?,
            // Numbered notifications: count, then bytes of padding.
            "flood" => flood(rest)?,
            // Answers every request with a result of many bytes.
            "large" => while let Some(line) = self.line()? {
                if let Some(id) = request_id(&line) { big(&format!("{id},{rest}"))? }
            },
            // A result of many bytes for the id.
            "big" => big(rest)?,
            // Reads requests that are answered by `release`.
            "hold" => self.hold(number(rest))?,
            "release" => put(&self.held.drain(..number(rest)).flat_map(|id| result(&id)).collect::<Vec<_>>())?,
            // Waits until a named pipe is opened and closed.
            "await" => drop(std::fs::read(rest)?),
            // Does nothing until it is killed.
            "hang" => loop {
                std::thread::park();
            },
            "spawn" => drop(Command::new("sh").args(["-c", rest]).spawn()?),
            "exit" => std::process::exit(rest.parse().unwrap_or(98)),
            "abort" => std::process::abort(),
            _ => std::process::exit(98),
        }
        Ok(())
    }

    /// The next line with its line ending, if there is one.
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.input.read_until(b'\n', &mut line)?;
        if let Some(log) = &mut self.log {
            log.write_all(&line)?;
        }
        Ok((!line.is_empty()).then_some(line))
    }

    fn answer(&self, line: &[u8]) -> io::Result<()> {
        request_id(line).map_or(Ok(()), |id| put(&result(&id)))
    }

    fn as_server(&self, line: &[u8], names: &str) -> io::Result<()> {
        let Some(id) = request_id(line) else { return Ok(()) };
        let text = String::from_utf8_lossy(line);
        let asked = |method: &str| text.contains(&format!("\"method\":\"{method}\""));
        let list = |key: &str, item: &dyn Fn(&str) -> String| {
            let items: Vec<String> = names.split(',').map(item).collect();
            format!("{{\"{key}\":[{}]}}", items.join(","))
        };
        let result = if asked("initialize") {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}"#.to_owned()
        } else if asked("tools/list") {
            list("tools", &|name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#))
        } else if asked("resources/list") {
            list("resources", &|name| format!(r#"{{"uri":"x://{name}","name":"{name}"}}"#))
        } else if asked("resources/templates/list") {
            list("resourceTemplates", &|name| format!(r#"{{"uriTemplate":"x://{name}/{{a}}","name":"{name}"}}"#))
        } else if asked("prompts/list") {
            list("prompts", &|name| format!(r#"{{"name":"{name}"}}"#))
        } else {
            format!(r#"{{"content":[{{"type":"text","text":"done"}}],"for":{id}}}"#)
        };
        put(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").as_bytes())
    }

    fn hold(&mut self, count: usize) -> io::Result<()> {
        let end = self.held.len() + count;
        while self.held.len() < end {
            let Some(line) = self.line()? else { break };
            self.held.extend(request_id(&line));
        }
        Ok(())
    }

    fn copy(&mut self) -> io::Result<()> {
        let mut piece = vec![0; 1 << 16];
        loop {
            let count = self.input.read(&mut piece)?;
            if count == 0 {
                return Ok(());
            }
            if let Some(log) = &mut self.log {
                log.write_all(&piece[..count])?;
            }
            put(&piece[..count])?;
        }
    }
}

fn put(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn flood(rest: &str) -> io::Result<()> {
    let (count, padding) = rest.split_once(',').unwrap_or((rest, "10"));
    let padding = "x".repeat(number(padding));
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout());
    for n in 0..number(count) {
        writeln!(out, r#"{{"jsonrpc":"2.0","method":"n","params":{{"n":{n},"x":"{padding}"}}}}"#)?;
    }
    out.flush()
}

/// `ID,BYTES`, or `last,ID,BYTES` to put the id after the result, or `note,,BYTES` without an id.
fn big(rest: &str) -> io::Result<()> {
    let words: Vec<&str> = rest.split(',').collect();
    let text = "y".repeat(number(words.last().unwrap_or(&"")));
    put(match words[..] {
        ["last", id, _] => format!("{{\"result\":{{\"t\":\"{text}\"}},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n"),
        ["note", _, _] => format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{{\"t\":\"{text}\"}}}}\n"),
        ["request", id, _] => {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\",\"params\":{{\"t\":\"{text}\"}}}}\n")
        }
        [id, ..] => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"t\":\"{text}\"}}}}\n"),
        [] => String::new(),
    }
    .as_bytes())
}

fn result(id: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"for\":{id}}}}}\n").into_bytes()
}

/// The id of a request, as written; `None` for anything else.
fn request_id(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    if !text.contains("\"method\":") {
        return None;
    }
    let rest = text.split_once("\"id\":")?.1;
    let end = match rest.strip_prefix('"') {
        Some(inner) => inner.find('"')? + 2,
        None => rest.find([',', '}'])?,
    };
    Some(rest[..end].to_owned())
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or(0)
}

/// Replaces `\n`, `\r`, `\\` and `\xHH`.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match (byte, byte == b'\\') {
            (_, true) => match bytes.next() {
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b'x') => {
                    let digits: Vec<u8> = bytes.by_ref().take(2).collect();
                    let digits = String::from_utf8_lossy(&digits).into_owned();
                    out.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
                }
                Some(other) => out.push(other),
                None => {}
            },
            (other, false) => out.push(other),
        }
    }
    out
}
