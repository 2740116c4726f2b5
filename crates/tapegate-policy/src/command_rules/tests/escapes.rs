//! Ways out of the folders of `under`.

use super::{check, policy, with_default};

/// A policy that permits everything in `/site`, whatever it does.
const ANYTHING: &str = "    - {action: forward, command: {class: [read-only, writes, network, runs-commands], under: /site}}\n";

#[test]
fn an_option_may_hold_a_path_anywhere() {
    let policy = policy(ANYTHING);
    let paths = ["/etc/x", "../x", "sub/../../x", "//etc/x", "/site/../etc/x"];
    let forms = [
        "curl -s -F f=@P http:",
        "curl -s -F 'f=@P;type=a/b' localhost",
        "curl -d@P localhost",
        "curl -d @P localhost",
        "curl --data=@P localhost",
        "curl -oP localhost",
        "gcc @P",
        "gcc -IP -o a a.c",
        "gcc -Wl,-rpath,P -o a a.c",
        "tar -cf P a",
        "tar -cfP a",
        "tar --file=P -c a",
        "tar -CP -cf a.tar a",
        "tar --to-command=P -cf a.tar a",
        "tar cf a.tar -C P a",
        "rsync a P",
        "scp a host:P",
        "dd if=a of=P",
        "git -C P status",
        "git --git-dir=P status",
        "git diff --output=P",
        "make -C P",
        "make -fP",
        "make -f P",
        "make DESTDIR=P",
        "find . -fprintf P %p",
        "find P -name a",
        "tee P",
        "install -t P a",
        "install -D a P",
        "cp a --target-directory=P",
        "cp -tP a",
        "sort -oP a",
        "sort --output=P a",
        "env -C P ls",
        "env FOO=P ls",
        "nice -n 5 cat P",
        "timeout 3 cat P",
        "xargs -a P ls",
        "perl -e 'open F, \">P\"'",
        "perl -pe 1 P",
        "python3 -c 'open(\"P\")'",
        "python3 P",
        "sed -n 'w P' a",
        "sed -n 'wP' a",
        "sed 's/a/b/w P' a",
        "awk '{print > \"P\"}' a",
        "awk -f P a",
        "ssh -iP host",
        "docker run -v P:/mnt image",
        "cat 'a:P'",
        "cat a,P",
    ];
    for form in forms {
        for path in paths {
            check(&policy, &[(&form.replace('P', path), '-')]);
        }
    }
    for inside in ["sub/x", "/site/sub/x", "x", "./x"] {
        for form in
            ["dd if=a of=P", "curl -F f=@P localhost", "make -C P", "gcc -I P a.c", "cat a,P"]
        {
            check(&policy, &[(&form.replace('P', inside), '+')]);
        }
    }
}

#[test]
fn what_only_prints_names_no_file() {
    let policy = policy(ANYTHING);
    check(
        &policy,
        &[
            ("echo 'see /etc/x' > notes.txt", '+'),
            ("printf '%s\\n' /usr/bin >> notes.txt", '+'),
            ("echo a > /etc/x", '-'),
            ("printf a > ../x", '-'),
        ],
    );
}

#[test]
fn code_in_an_argument_opens_any_file() {
    let policy = policy(ANYTHING);
    check(
        &policy,
        &[
            ("python3 run.py --fast", '+'),
            ("python3 -m pytest sub", '+'),
            ("python3 -c 'import os'", '-'),
            ("python3 -Bc 'import os'", '-'),
            ("python3 <<E\nimport os\nE", '-'),
            ("node --eval 'x'", '-'),
            ("node run.js", '+'),
            ("perl -ne x a", '-'),
            ("ruby -e x", '-'),
            ("sed -n 1p a", '+'),
            ("sed -i s/a/b/ a", '-'),
            ("awk 'BEGIN { system(\"ls\") }'", '-'),
        ],
    );
    let policy = with_default("forward", "    - {action: deny, command: {under: /etc}}\n");
    check(
        &policy,
        &[
            ("curl -F f=@/etc/hostname localhost", '-'),
            ("curl -d@/etc/hostname localhost", '-'),
            ("sed -n 'w /tmp/x' a", '?'),
            ("git commit -m 'look at /etc/x'", '?'),
        ],
    );
}

#[test]
fn a_link_leads_nowhere_else() {
    let policy = policy(ANYTHING);
    check(
        &policy,
        &[
            ("ln -s ../.. /site/lnk", '-'),
            ("ln -s ../x sub/lnk", '-'),
            ("cd sub && ln -s ../x lnk", '-'),
            ("ln -s a/../b lnk", '-'),
            ("ln -s . lnk", '-'),
            // It would be nearer to the root than a path through it says, or be moved there.
            ("ln -s /site sub/lnk", '-'),
            ("ln -s / lnk", '-'),
            ("ln -sr sub/a lnk", '-'),
            ("ln -s -t sub a", '-'),
            ("ln --symb .. lnk", '-'),
            ("ln -fs \"$x\" lnk", '-'),
            ("ln -s ..", '-'),
            ("ln a ../b", '-'),
            ("ln /etc/passwd b", '-'),
            ("link ../a b", '-'),
            ("cp -s a b", '-'),
            ("cp --symbolic-link a b", '-'),
            ("tar -xf a.tar", '-'),
            ("tar xf a.tar", '-'),
            ("tar --extract --file=a.tar", '-'),
            ("unzip a.zip", '-'),
            ("git apply a.patch", '-'),
            ("patch -p1 a.patch", '-'),
            ("ln -s target lnk", '+'),
            ("ln -sfn v2/bin current", '+'),
            ("ln -s sub/target /site/lnk", '+'),
            ("ln a b", '+'),
            ("tar -cf a.tar sub", '+'),
            ("cp -r a b", '+'),
        ],
    );
}

#[test]
fn traps_and_functions_run_in_any_folder() {
    let policy = policy(ANYTHING);
    check(
        &policy,
        &[
            ("trap 'cd ..' DEBUG; echo 1; echo 2; echo pwn > attack/x", '-'),
            ("trap 'cd sub' DEBUG; echo pwn > x", '-'),
            ("trap 'echo pwn > x' EXIT; cd sub", '-'),
            ("f() { cd sub; }; trap f USR1; echo pwn > x", '-'),
            ("g() { echo pwn > x; }; cd sub; g", '-'),
            ("trap 'rm -f x' EXIT; touch x", '+'),
            ("cd sub; g() { touch x; }; g", '+'),
        ],
    );
}
