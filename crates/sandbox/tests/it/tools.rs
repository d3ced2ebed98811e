//! Normal work goes on inside the walls, with the host's own tools.

use crate::house::{As, House, everyone};
use bailey_protocol::Isolation;
use std::{collections::BTreeMap, path::PathBuf};

/// A house with the real home and PATH, so that toolchains of the home are found. Its files are only read.
fn with_tools(who: As) -> Option<House> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    if who == As::User && crate::house::is_root() {
        println!("SKIPPED as user: root's home is not theirs to read");
        return None;
    }
    let path = std::env::var("PATH").ok()?;
    Some(House::with(who, |config| {
        config.user_home = home;
        config.path = path;
        let author = [
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@b"),
            ("GIT_COMMITTER_NAME", "A"),
            ("GIT_COMMITTER_EMAIL", "a@b"),
        ];
        config.env =
            author.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect::<BTreeMap<_, _>>();
    }))
}

fn has(program: &str) -> bool {
    let found = std::process::Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        println!("SKIPPED {program}: not installed here");
    }
    found
}

async fn check(program: &str, files: &[(&str, &str)], line: &str, expected: &str) {
    if !has(program) {
        return;
    }
    for house in everyone().into_iter().filter_map(with_tools) {
        for (name, text) in files {
            house.write(name, text);
        }
        let ran = house.run(&house.command(line), &Isolation::default()).await;
        assert!(ran.ok().contains(expected), "{program}: {}", ran.text());
    }
}

#[tokio::test]
async fn cargo_builds_and_tests() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/main.rs", "fn main() { println!(\"hello\"); }\n#[test] fn adds() { assert_eq!(1 + 1, 2); }\n"),
    ];
    check("cargo", &files, "cargo --offline test -q 2>&1 && cargo --offline run -q", "hello").await;
}

#[tokio::test]
async fn python_runs_threads_processes_and_pipes() {
    let text = "import subprocess, threading, multiprocessing, tempfile, sqlite3, ssl, json, asyncio\n\
                def work(q): q.put(7)\n\
                if __name__ == '__main__':\n\
                \x20   q = multiprocessing.Queue(); p = multiprocessing.Process(target=work, args=(q,)); p.start(); print(q.get()); p.join()\n\
                \x20   print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout.strip())\n\
                \x20   async def main(): return (await (await asyncio.create_subprocess_exec('true')).wait())\n\
                \x20   print('asyncio', asyncio.run(main()))\n";
    check("python3", &[("t.py", text)], "python3 t.py", "7\nsub\nasyncio 0").await;
}

#[tokio::test]
async fn node_runs_workers_and_servers() {
    let text = "const { Worker } = require('worker_threads'); const { execSync } = require('child_process');\n\
                const http = require('http'); console.log(execSync('echo sub').toString().trim());\n\
                new Worker('require(\"worker_threads\").parentPort.postMessage(7)', { eval: true }).on('message', (m) => {\n\
                  console.log(m); const s = http.createServer((q, r) => r.end('ok')).listen(0, '127.0.0.1', () =>\n\
                    http.get({ port: s.address().port, host: '127.0.0.1' }, (r) => { console.log(r.statusCode); s.close(); process.exit(0); }));\n\
                });\n";
    check("node", &[("t.js", text)], "node t.js", "sub\n7\n200").await;
}

#[tokio::test]
async fn gcc_compiles_and_its_program_runs() {
    let text = "#include <stdio.h>\n#include <pthread.h>\nvoid *f(void *x) { return x; }\n\
                int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); puts(\"compiled\"); return 0; }\n";
    check("gcc", &[("t.c", text)], "gcc -O1 -pthread t.c -o t && ./t", "compiled").await;
}

#[tokio::test]
async fn git_commits_with_hooks() {
    let line = "git init -q . && printf '#!/bin/sh\\necho hook ran\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && \
                echo a > a && git add a && git commit -qm first 2>&1 && git log --format='%an %s' && git status --short";
    check("git", &[], line, "hook ran\nA first").await;
}

#[tokio::test]
async fn git_starts_nothing_for_a_planted_repository() {
    if !has("git") {
        return;
    }
    // A bare repository laid out in a plain folder, with a hook of its own.
    let plant = "git init -q --bare sub && printf '#!/bin/sh\\ntouch /tmp/ran\\n' > sub/hooks/reference-transaction && \
                 chmod +x sub/hooks/reference-transaction && \
                 git --git-dir=sub commit-tree -m x $(git --git-dir=sub mktree </dev/null) > commit; rm -f /tmp/ran";
    let step = "cd sub; git update-ref refs/heads/x $(cat ../commit) 2>&1; ls /tmp/ran 2>&1";
    for house in everyone().into_iter().filter_map(with_tools) {
        house.sh(plant).await.ok();
        let text = house.sh(step).await.text();
        assert!(text.contains("safe.bareRepository") && text.contains("cannot access '/tmp/ran'"), "{text}");
        // The control: without our variables the same step runs it.
        let unguarded = format!("unset GIT_CONFIG_COUNT; {step}");
        assert_eq!(house.sh(&unguarded).await.text().trim(), "/tmp/ran");
    }
}
