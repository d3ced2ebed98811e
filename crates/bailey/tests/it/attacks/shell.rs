//! A16, A17, A18: every trick of a shell, a tool's option or a loader, run as a command that the rules allow.
//! No text is matched: each must be harmless because of where it runs.

use super::{
    actor::{Actor, CANARY, Who},
    control::{Lack, Lacks, judge},
};

/// `STEAL` prints a secret of the home and writes a file there; `SECRET` is the secret's path, `OWNED` the
/// file's. Each trick does so in a way of its own.
const TRICKS: &[(&str, &str)] = &[
    (
        "A16 pipe to node",
        r#"echo 'const f = require("fs"); console.log(f.readFileSync("SECRET", "utf8")); f.writeFileSync("OWNED", "x")' | node"#,
    ),
    ("A16 pipe to python", r#"echo 'print(open("SECRET").read()); open("OWNED", "w").write("x")' | python3"#),
    ("A16 semicolon", "true; STEAL"),
    ("A16 and", "true && STEAL"),
    ("A16 substitution", "echo \"$(STEAL)\""),
    ("A16 backticks", "echo `STEAL`"),
    ("A16 heredoc", "cat <<END\n$(STEAL)\nEND"),
    ("A16 process substitution", "bash -c 'cat <(STEAL)'"),
    ("A16 newline", "true\nSTEAL"),
    ("A16 pager", "export GIT_PAGER='sh -c \"STEAL\"'; git grep -O a"),
    ("A16 alias", "bash -O expand_aliases -c 'alias ls=\"STEAL; ls\"\nls'"),
    ("A16 glob", "cat /????/*/us?r/.s*h/i*; cat $HOME/.ss*/*"),
    ("A16 find", "find . -maxdepth 0 -exec sh -c 'STEAL' \\;"),
    ("A16 xargs", "echo x | xargs -I{} sh -c 'STEAL'"),
    ("A16 env", "env X=1 sh -c 'STEAL'"),
    ("A16 eval of base64", "eval \"$(printf '%s' 'STEAL' | base64 | base64 -d)\""),
    ("A16 make", "printf 'all:\\n\\t@STEAL\\n' > Makefile; make -s"),
    ("A16 npm script", r#"echo '{"name":"x","scripts":{"x":"STEAL"}}' > package.json; npm run -s x"#),
    (
        "A17 tar checkpoint",
        "tar cf /dev/null a.txt --checkpoint=1 --checkpoint-action=exec='sh -c \"STEAL\"'",
    ),
    (
        "A17 abbreviated option",
        "tar cf /dev/null a.txt --checkpoint=1 --checkpoint-act=exec='sh -c \"STEAL\"'",
    ),
    (
        "A17 compress program",
        "printf '#!/bin/sh\\nSTEAL >&2\\ncat\\n' > z; chmod 755 z; seq 300 | sort -S 1k --compress-prog=./z 2>&1 >/dev/null | sort -u",
    ),
    ("A17 ssh ProxyCommand", "ssh -oProxyCommand='sh -c \"STEAL >&2\"' -oBatchMode=yes host true 2>&1"),
    ("A17 rsync -e", "printf '{ STEAL; } >&2\\n' > s; rsync -e 'sh ./s' a.txt host:/x 2>&1"),
    ("A17 git ssh", "GIT_SSH_COMMAND='STEAL >&2; true' git fetch ssh://host/x 2>&1"),
    (
        "A17 git editor",
        "GIT_EDITOR='STEAL >&2; true' git -c user.name=x -c user.email=x@x.invalid commit --allow-empty 2>&1",
    ),
    (
        "A17 git filter",
        "git -c filter.f.smudge='STEAL >&2; cat' -c filter.f.clean=cat checkout 2>&1; echo '* filter=f' > .gitattributes; rm a.txt; git -c filter.f.smudge='STEAL >&2; cat' checkout -- a.txt 2>&1",
    ),
    ("A17 git alias", "git -c alias.x='!STEAL' x"),
    ("A17 git fsmonitor", "git -c core.fsmonitor='STEAL >&2; false' status 2>&1"),
    (
        "A17 git ext transport",
        "printf '{ STEAL; } >&2\\n' > s; git -c protocol.ext.allow=always clone 'ext::sh ./s' x 2>&1",
    ),
    ("A18 /proc/self/root", "/proc/self/root/bin/cat SECRET; /proc/self/root/bin/cp a.txt OWNED"),
    ("A18 copied binary", "cp /bin/cat ./harmless; ./harmless SECRET; cp /bin/touch ./t; ./t OWNED"),
    (
        "A18 loader",
        "for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do [ -e $l ] && $l /bin/cat SECRET && $l /bin/touch OWNED; done",
    ),
    (
        "A18 memory file",
        r#"python3 -c 'import os
f = os.memfd_create("x"); os.write(f, open("/bin/cat", "rb").read()); os.execve(f, ["cat", "SECRET"], {})'"#,
    ),
    ("A18 shebang", "printf '#!/usr/bin/env -S sh -c \"STEAL\"\\n' > s; chmod 755 s; ./s"),
    ("A18 interpreter as argument", "printf 'STEAL\\n' > s; . ./s"),
    (
        "A18 LD_PRELOAD",
        r#"printf '#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { unsetenv("LD_PRELOAD"); system("STEAL"); }\n' > p.c
        cc -shared -fPIC -o p.so p.c && LD_PRELOAD=$PWD/p.so /bin/true"#,
    ),
    (
        "A18 LD_AUDIT",
        r#"printf '#include <stdlib.h>\nunsigned la_version(unsigned v) { unsetenv("LD_AUDIT"); system("STEAL"); return v; }\n' > p.c
        cc -shared -fPIC -o p.so p.c && LD_AUDIT=$PWD/p.so /bin/true"#,
    ),
    (
        "A18 GCONV_PATH",
        r#"printf '#include <stdlib.h>\nvoid gconv_init(void) { unsetenv("GCONV_PATH"); system("STEAL"); exit(0); }\nvoid gconv(void) {}\n' > p.c
        mkdir -p g && cc -shared -fPIC -o g/evil.so p.c && printf 'module EVIL// INTERNAL evil 1\nmodule INTERNAL EVIL// evil 1\n' > g/gconv-modules
        GCONV_PATH=$PWD/g iconv -f EVIL -t UTF-8 a.txt"#,
    ),
    ("A18 set-user-id", "cp /bin/sh ./root; chmod u+s ./root; ./root -pc 'STEAL'"),
];

/// What a trick needs that not every machine has.
const LACKS: &Lacks = &[
    (&["A16 pipe to node"], Lack::Program("node")),
    (&["A16 npm script"], Lack::Program("npm")),
    (&["A16 make"], Lack::Program("make")),
    (&["A17 ssh ProxyCommand"], Lack::Program("ssh")),
    // A container may have no entry for its user, and then ssh does nothing.
    (&["A17 ssh ProxyCommand"], Lack::Words("No user exists for uid")),
    (&["A17 rsync -e"], Lack::Program("rsync")),
    (&["A18 LD_PRELOAD", "A18 LD_AUDIT", "A18 GCONV_PATH"], Lack::Program("cc")),
];

attack!(a16_a18_tricks_of_the_shell_reach_nothing);
fn a16_a18_tricks_of_the_shell_reach_nothing(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let secret = actor.user().join(".ssh/id_ed25519").display().to_string();
    let owned = actor.user().join("owned");
    let path = owned.display().to_string();
    let steal = format!("cat {secret}; touch {path}");
    for (name, trick) in TRICKS {
        let trick = trick.replace("STEAL", &steal).replace("SECRET", &secret).replace("OWNED", &path);
        // With the table of programs, and with an emptied one: none of these walls reads what it says.
        for inside in [actor.sh(&trick), actor.unread(&["sh", "-c", &trick])] {
            assert!(!format!("{inside:?}").contains(CANARY) && !owned.exists(), "{name}: {inside:?}");
        }
        let copy = actor.stage.folder().join("user/copy").display().to_string();
        let project = actor.stage.project().display().to_string();
        let apart = format!("rm -rf {copy}; cp -r {project} {copy}; cd {copy}\n{trick}");
        let control = actor.outside(&["timeout", "20", "sh", "-c", &apart]);
        let ended = format!("{control:?}");
        let stole = ended.contains(CANARY) || owned.exists();
        judge(who, name, stole.then_some("without walls").ok_or(&[ended.as_str()][..]), LACKS);
        std::fs::remove_file(&owned).ok();
    }
}

attack!(a18_a_program_from_memory_is_in_the_same_walls);
fn a18_a_program_from_memory_is_in_the_same_walls(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let program = r#"import os
f = os.memfd_create("x"); os.write(f, open("/bin/grep", "rb").read())
os.execve(f, ["grep", "-E", "^(Seccomp|NoNewPrivs|CapEff|CapBnd):", "/proc/self/status"], {})"#;
    let look = ["/usr/bin/python3", "-c", program];
    let ran = actor.inside(&look);
    let fields: String = ran.stdout.split_whitespace().collect();
    assert_eq!(fields, "CapEff:0000000000000000CapBnd:0000000000000000NoNewPrivs:1Seccomp:2", "{ran:?}");
    let control: String = actor.outside(&look).stdout.split_whitespace().collect();
    assert!(control.ends_with("NoNewPrivs:0Seccomp:0"), "{control}");
}

/// Commands that begin as the rules allow, and run something else by an option.
const OPTIONS: &[&[&str]] = &[
    &["find", ".", "-maxdepth", "0", "-exec", "sh", "-c", "RUN", ";"],
    &["git", "-c", "alias.x=!RUN", "x"],
    &["tar", "cf", "/dev/null", "a.txt", "--checkpoint=1", "--checkpoint-action=exec=sh -c 'RUN'"],
    &["awk", "BEGIN { system(\"RUN\") }"],
    &["python3", "-c", "import os; os.system('RUN')"],
];

attack!(a13_a17_what_the_table_of_programs_misses_is_held_by_the_walls);
fn a13_a17_what_the_table_of_programs_misses_is_held_by_the_walls(who: Who) {
    let actor = Actor::new(who, &[("a.txt", "a\n")]);
    let rules = "[[rule]]\nname = \"by-name\"\nanswer = \"allow\"\nmatch = { action = \"exec\", command = [\"find\", \"git\", \
                 \"tar\", \"awk\", \"python3\"] }\n";
    std::fs::create_dir_all(actor.stage.home().join("policy")).unwrap();
    std::fs::write(actor.stage.home().join("policy/own.toml"), rules).unwrap();
    actor.own();
    let secret = actor.user().join(".ssh/id_ed25519").display().to_string();
    let run = format!("echo ran; cat {secret}");
    for option in OPTIONS {
        let argv: Vec<String> = option.iter().map(|word| word.replace("RUN", &run)).collect();
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let gate = actor.inside(&argv);
        assert!(
            !gate.stdout.contains("ran") && format!("{gate:?}").contains("no rule allows this"),
            "{option:?}: {gate:?}"
        );
        // Without the table the gate lets it through, and it finds nothing.
        let unread = actor.unread(&argv);
        assert!(
            unread.stdout.contains("ran") && !format!("{unread:?}").contains(CANARY),
            "{option:?}: {unread:?}"
        );
        let control = format!("{:?}", actor.outside(&argv));
        judge(
            who,
            option[0],
            control.contains(CANARY).then_some("without walls").ok_or(&[control.as_str()][..]),
            LACKS,
        );
    }
}
