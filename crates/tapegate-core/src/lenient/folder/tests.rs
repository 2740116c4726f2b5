//! Tests of which texts are inside a folder.

use super::*;

fn data() -> FolderPath {
    FolderPath::parse("/data").unwrap()
}

#[test]
fn a_path_in_the_folder_is_held_however_it_gets_there() {
    for path in [
        "/data",
        "/data/",
        "/data/a",
        "/data/a/b.txt",
        "/data/./a",
        "/data/a/../b",
        "/data/..a/b..",
        "/data/100%",
        "/data/é",
        "/data/e\u{301}",
        "/data/a b",
        "/data/a%20b",
        "/data/a#b",
        "/data/a?b=c",
        "/data/a;b/c",
        "/data/{{name}}.txt",
        "/data/$id.tsx",
        "/data/[id]/*.txt",
        "/data/~/a",
        "/data/c++/a+b",
    ] {
        assert!(data().holds(path), "{path}");
        assert!(data().may_hold(path), "{path}");
    }
}

#[test]
fn a_path_that_some_reader_takes_elsewhere_is_not_held() {
    for path in [
        "",
        "/",
        "/dat",
        "/database",
        "/data-old/a",
        "/data/../etc/passwd",
        "/data/..",
        "/data/a/../../etc",
        "/data/%2e%2e/etc",
        "/data/%252e%252e/etc",
        "/data/..%2fetc",
        "/data/..%5c..%5cetc",
        "/data\\..\\..\\etc",
        "/data/..\\etc",
        "/data/.. /etc",
        "/data/\u{2024}\u{2024}/etc",
        "/data/．．/etc",
        "/data/{..,a}/etc",
        "/data/a\0",
        "/data/.\n./etc",
        "/data/.\u{200b}./etc",
        "/data/..;/etc",
        "/data/..+/etc",
        "/data/.../etc",
        "/data/+/../x",
        "/data/%u002e%u002e/etc",
        "/data/%25u002e%25u002e/etc",
        "/data/{.,a}{.,b}/etc",
        "/data/\u{ff05}2e\u{ff05}2e/etc",
        "/data/%c0%ae%c0%ae/etc",
        "/data/..#",
        "/data/..%3Fa",
        "/data/.file://./etc",
        "/x#/../../data/a",
        "/x/../data/a",
        "/../data/a",
        "/data/../data/a",
        "//data//a",
        "/\\data/a",
        "file:///data/a",
        "file:///data/a%20b",
        "file://localhost/data/a",
        "file:/data/a",
        "file:data/a",
        "file:///data/x#/../../../../etc/passwd",
        "file:///data/x?/../../../../etc/passwd",
        "file:///../data/x",
        "/data%00/a",
        "/Data/a",
        " /data/a",
        "data/a",
        "./data/a",
        "~/data",
        "~",
        "C:\\data\\a",
        "https://data/a",
        "file://host/data/a",
        "file:///etc/data",
        "file:///data/%2e%2e/etc",
        "FILE:data/a",
    ] {
        assert!(!data().holds(path), "{path}");
    }
}

#[test]
fn a_path_that_a_shell_takes_elsewhere_is_not_held() {
    for path in [
        "/data/{x,../../etc}/passwd",
        "/data/{a/b,..}/etc",
        "/data/$x/../etc",
        "/data/.$x./etc",
        "/data/${x:-..}/etc",
        "/data/$(echo ..)/etc",
        "/data/.?/etc",
        "$HOME/a",
        "${HOME}/data",
        "%HOME%/data",
    ] {
        assert!(!data().holds(path), "{path}");
    }
}

#[test]
fn a_path_that_some_reader_takes_into_the_folder_may_be_held() {
    let etc = FolderPath::parse("/etc").unwrap();
    for path in [
        "/etc/passwd",
        "/ETC/passwd",
        "/tmp/../etc/passwd",
        "/%65tc/passwd",
        "/%2565tc/passwd",
        "%2Fetc%2Fpasswd",
        " /etc/passwd",
        "/etc/passwd\0.txt",
        "\\etc\\passwd",
        "/ｅｔｃ/passwd",
        "file:///etc/passwd",
        "file:/etc/passwd",
        "FILE://localhost/%65tc/passwd",
        "etc/passwd",
        "../../etc/passwd",
        "~/x",
        "x://../../etc/passwd",
        "/etc/passwd#/../../data/a",
        "/data/x#/../../etc/passwd",
        "/etc?/../../data/a",
        "//host/etc/passwd",
        "file:etc/passwd",
        "file://host/etc/passwd",
        "file:///data/x#/../../etc/passwd",
        "/data/.\n./etc/passwd",
        "/\u{ff05}65tc/passwd",
        "/et?/passwd",
        "/e*/passwd",
        "/*/passwd",
        "/**/passwd",
        "/[e]tc/passwd",
        "/$x/passwd",
        "/{etc,data}/passwd",
        "/data/{a,../../etc}/passwd",
        "/data/$x/../etc",
        "$HOME/passwd",
        "/%u0065tc/passwd",
        "local:///etc/passwd",
        "git+file:///etc/passwd",
        "git+file:/etc/passwd",
        "/\u{fe0f}etc/passwd",
    ] {
        assert!(etc.may_hold(path), "{path}");
    }
    for path in [
        "/data/a",
        "/data/etc/passwd",
        "/etcetera",
        "https://etc/passwd",
        "/",
        "local:///data",
        "memory://etc/passwd",
    ] {
        assert!(!etc.may_hold(path), "{path}");
    }
    for path in ["/data/e?c/passwd", "/et?", "/data/$x", "/x*/etc"] {
        assert_eq!(etc.may_hold(path), path == "/et?", "{path}");
    }
    assert!(FolderPath::parse("/data/a b").unwrap().may_hold("/data/a+b/c"));
    let accent = FolderPath::parse("/data/é").unwrap();
    assert!(accent.may_hold("/data/e\u{301}/a") && !accent.holds("/data/e\u{301}/a"));
}

#[test]
fn what_is_not_a_folder_is_refused_with_the_way_out() {
    for (text, hint) in [
        ("data", "absolute"),
        ("", "absolute"),
        ("./data", "${PWD}"),
        ("~/data", "${HOME}"),
        ("/data/*", "covers everything below it: `/data`"),
        ("/*", "covers everything below it: `/`"),
        ("file:/data", "written as `file:///data`"),
        ("file://host/data", "written as `file:///data`"),
        ("file:///a%20b", "without host, escapes"),
    ] {
        let error = FolderPath::parse(text).unwrap_err();
        assert!(error.contains(hint), "{text}: {error}");
    }
    let root = FolderPath::parse("/").unwrap();
    assert!(root.holds("/etc") && root.holds("/") && !root.holds("etc"));
    assert!(FolderPath::parse("/data/../srv/").unwrap().holds("/srv/a"));
}

#[test]
fn a_folder_that_is_a_uri_holds_uris_that_every_reader_resolves_alike() {
    let data = FolderPath::parse("file:///data").unwrap();
    for uri in [
        "file:///data",
        "file:///data/",
        "file:///data/a",
        "file:///data/a%20b",
        "file:///data/%C3%BC",
    ] {
        assert!(data.holds(uri) && data.may_hold(uri), "{uri}");
    }
    for uri in [
        "/data/a",
        "data/a",
        "FILE:///data/a",
        "file:/data/a",
        "file:data/a",
        "file://data/a",
        "file://localhost/data/a",
        "file:////data/a",
        "file:///database",
        "file:///etc",
        "file:///data/a#b",
        "file:///data/a?b",
        "file:///data/x#/../../etc",
        "file:///data/x/../a",
        "file:///../data/a",
        "file:///data/%2e%2e/etc",
        "file:///data/%2E./etc",
        "file:///data/a%2fb",
        "file:///data/a%5Cb",
        "file:///data/%252e",
        "file:///data/100%",
        "file:///data\\a",
        "file:///data/a%00",
        " file:///data/a",
    ] {
        assert!(!data.holds(uri), "{uri}");
    }
}

#[test]
fn a_folder_that_is_a_uri_stops_what_could_lead_there_and_no_other_uri() {
    let etc = FolderPath::parse("file:///etc").unwrap();
    for uri in [
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "file:etc/passwd",
        "file://host/etc/passwd",
        "file:///data/x#/../../etc/passwd",
        "file:///etc/x#/../../data",
        "file:///%65tc/passwd",
        "/etc/passwd",
        "passwd",
    ] {
        assert!(etc.may_hold(uri), "{uri}");
    }
    for uri in ["file:///data/a", "file:///data/a?b#c", "/data/a", "https://etc/passwd"] {
        assert!(!etc.may_hold(uri), "{uri}");
    }
}
