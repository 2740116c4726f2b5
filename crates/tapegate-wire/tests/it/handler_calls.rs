//! Handler calls: programs run and servers called for an actor.

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::http_peers::HttpTestServer;
use crate::stdio_actor_host::StdioActorHost;
use crate::waiting::{wait_for_pid, wait_for_the_end_of, wait_until};

#[test]
fn a_program_is_told_on_its_input_and_what_it_says_comes_back() {
    let mut house = StdioActorHost::open();
    house.say("run cat\nsay meanwhile\n");
    assert_eq!(house.line(), "meanwhile");
    assert_eq!(house.line(), "done 7 ok {\"asked\":1}");
    house.say("run printenv TAPEGATE_TEST PWD\n");
    assert_eq!(house.line(), "done 7 ok yes");
}

#[test]
fn an_errand_is_waited_for_even_when_the_client_says_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut house = StdioActorHost::open();
    house.say(&format!("run cat {}\n", path.display()));
    house.input = None;
    wait_until("the client to be gone", || {
        house.log.lock().unwrap().iter().any(|line| line.ends_with(" Left"))
    });
    // The program ends with its input.
    drop(std::fs::File::options().write(true).open(&path).unwrap());
    assert_eq!(house.line(), "done 7 ok");
    assert_eq!(house.line(), "");
    assert_eq!(house.end().0, "Client");
}

#[test]
fn a_program_that_takes_too_long_says_too_much_fails_or_is_not_there_has_failed() {
    let mut house = StdioActorHost::open();
    house.say("run sleep 600\n");
    assert_eq!(house.line(), "done 7 failed no answer within 500 ms");
    house.say("run head -c 1001 /dev/zero\n");
    assert_eq!(house.line(), "done 7 failed its output is larger than 1000 bytes");
    house.say("run false\n");
    assert_eq!(house.line(), "done 7 failed it ended with exit status: 1");
    house.say("run no-such-program-of-anybody\n");
    let line = house.line();
    assert!(line.starts_with("done 7 failed cannot start `no-such-program"), "{line}");
}

#[test]
fn a_program_that_leaves_others_behind_is_done_when_it_is_and_they_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = folder.path().join("script");
    let text = format!("sleep 100 & echo $! > {}\necho done", file.display());
    std::fs::write(&script, text).unwrap();
    let mut house = StdioActorHost::open();
    house.say(&format!("run sh {}\n", script.display()));
    assert_eq!(house.line(), "done 7 ok done");
    wait_for_the_end_of(&std::fs::read_to_string(&file).unwrap());
}

#[test]
fn nothing_of_an_errand_outlives_its_seat() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = folder.path().join("script");
    std::fs::write(&script, format!("echo $$ > {}\nexec sleep 100", file.display())).unwrap();
    let mut house = StdioActorHost::open();
    house.say(&format!("run sh {}\n", script.display()));
    let pid = wait_for_pid(&file);
    house.say("break\n");
    assert_eq!(house.end().0, "Actor");
    wait_for_the_end_of(&pid);
}

#[test]
fn a_server_is_posted_to_and_its_answer_comes_back() {
    let server =
        HttpTestServer::start(|seen| (String::new(), format!("{{\"heard\":{}}}", seen.body)));
    let mut house = StdioActorHost::open();
    for _ in 0..2 {
        house.say(&format!("post {}\n", server.url()));
        assert_eq!(house.line(), "done 8 ok {\"heard\":{\"asked\":1}}");
    }
    let seen = server.wait("POST /mcp");
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("x-key"), Some("s3cret"));
}

#[test]
fn redirects_are_not_followed_and_faults_are_told() {
    let mut house = StdioActorHost::open();
    let server = HttpTestServer::start(|_| (String::new(), "x".repeat(1001)));
    house.say(&format!("post {}\n", server.url()));
    assert_eq!(house.line(), "done 8 failed its output is larger than 1000 bytes");
    let moved = redirecting();
    house.say(&format!("post http://127.0.0.1:{moved}/\n"));
    assert_eq!(house.line(), "done 8 failed it answered with status 302");
    house.say("post ftp://127.0.0.1/\n");
    let line = house.line();
    assert!(line.starts_with("done 8 failed `ftp://127.0.0.1/` is not a valid HTTP URL"), "{line}");
    house.say("post http://127.0.0.1:1/\n");
    let line = house.line();
    assert!(line.starts_with("done 8 failed cannot reach 127.0.0.1"), "{line}");
}

/// A server that redirects its only client.
fn redirecting() -> u16 {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        let head =
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        // The client closes the connection when it no longer needs it.
        while lines.next().is_some() {}
    });
    port
}
